// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The handles that callers hold.
#ifndef NDA_LIB_HANDLES_H
#define NDA_LIB_HANDLES_H

#include "lib/nda/guard.h"
#include "lib/nda/nic.h"
#include "lib/nda/npu.h"

struct nda_npu : nda::Handle<nda::Npu> {
	using Handle::Handle;
};
struct nda_nic : nda::Handle<nda::Nic> {
	using Handle::Handle;
};
struct nda_mr : nda::Handle<nda::Mr> {
	using Handle::Handle;
};

namespace nda {

inline const std::shared_ptr<Npu> *lookup(const nda_npu *npu)
{
	return lookup<Npu>(npu, "npu");
}
inline const std::shared_ptr<Nic> *lookup(const nda_nic *nic)
{
	return lookup<Nic>(nic, "nic");
}
inline const std::shared_ptr<Mr> *lookup(const nda_mr *mr)
{
	return lookup<Mr>(mr, "mr");
}

} // namespace nda

#endif
