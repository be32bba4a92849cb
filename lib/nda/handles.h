// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The handles that callers hold.
#ifndef NDA_LIB_HANDLES_H
#define NDA_LIB_HANDLES_H

#include "lib/nda/channel.h"
#include "lib/nda/group.h"
#include "lib/nda/guard.h"
#include "lib/nda/import.h"
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
struct nda_channel : nda::Handle<nda::Channel> {
	using Handle::Handle;
};
struct nda_import : nda::Handle<nda::Import> {
	using Handle::Handle;
};
struct nda_group : nda::Handle<nda::Group> {
	using Handle::Handle;
};
struct nda_group_region : nda::Handle<nda::Region> {
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
inline const std::shared_ptr<Channel> *lookup(const nda_channel *channel)
{
	return lookup<Channel>(channel, "channel");
}
inline const std::shared_ptr<Import> *lookup(const nda_import *import)
{
	return lookup<Import>(import, "import");
}
inline const std::shared_ptr<Group> *lookup(const nda_group *group)
{
	return lookup<Group>(group, "group");
}
inline const std::shared_ptr<Region> *lookup(const nda_group_region *region)
{
	return lookup<Region>(region, "region");
}

} // namespace nda

#endif
