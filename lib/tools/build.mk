# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# nda-perf. Everything but the file with main() is also linked into its tests.

CXXFLAGS_lib_tools_perf := -DNDA_VERSION='"$(NDA_VERSION)"'

# What needs neither libnda nor a kernel.
perf_host_objs := $(call objs,$(addprefix lib/tools/perf/,file.cc histogram.cc job.cc layout.cc \
	options.cc pattern.cc report.cc row.cc sha256.cc))
perf_libs := -lcrypto
