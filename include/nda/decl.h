/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the declarations of the C API carry. */
#ifndef NDA_DECL_H
#define NDA_DECL_H

/* No function lets a C++ exception out. */
#ifdef __cplusplus
#define NDA_NOEXCEPT noexcept
#else
#define NDA_NOEXCEPT
#endif

#endif
