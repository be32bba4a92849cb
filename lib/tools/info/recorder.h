// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The program exports verbs_register_driver_extend (exported.list), under which drivers
// register: so it hears their names, which libibv_extend tells nobody.
#ifndef NDA_INFO_RECORDER_H
#define NDA_INFO_RECORDER_H

#include <string>
#include <vector>

struct verbs_device_extend_ops;

namespace nda::info {

// The names so far, in order, of drivers that the library would take.
const std::vector<std::string> &recorded_registrations();

// From now on they also go to the library's function; nullptr: to nobody.
void forward_registrations(void (*function)(const verbs_device_extend_ops *));

} // namespace nda::info

#endif
