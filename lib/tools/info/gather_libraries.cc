// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The libraries that a program gets. This program has no run path of its own, so that the
// dynamic loader answers it as any other.
#include "lib/tools/info/gather.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <link.h>

#include <ibv_extend.h>

#include "lib/ibv_extend/search.h"
#include "lib/tools/info/child.h"
#include "lib/tools/info/elf_file.h"

namespace nda::info {
namespace {

// Part of our build of libibv_extend (lib/ibv_extend/version.cc).
constexpr char mark[] = "nda libibv_extend ";

const char *maker_of(const std::string &file)
{
	if (file_contains(file, mark))
		return "nda";
	return file.find("/Ascend/") != std::string::npos ? "Ascend driver package"
							  : "other";
}

std::string version_of(void *handle, const std::string &wanted)
{
	if (wanted.find("libnda") == 0) {
		const auto version =
			reinterpret_cast<const char *(*)()>(dlsym(handle, "nda_version"));
		return version ? version() : "";
	}
	const auto version = reinterpret_cast<decltype(&ibv_extend_get_version)>(
		dlsym(handle, "ibv_extend_get_version"));
	return version ? version(nullptr, nullptr, nullptr) : "";
}

// Its constructors, and those of what it needs, run in a child.
Library find_library(const std::string &wanted)
{
	Library library;
	library.wanted = wanted;
	const ChildResult result = in_child([&](const Tell &tell) {
		void *handle = dlopen(wanted.c_str(), RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			return tell(std::string("error ") + dlerror());
		link_map *map;
		if (!dlinfo(handle, RTLD_DI_LINKMAP, &map))
			tell(std::string("path ") + map->l_name);
		tell("version " + version_of(handle, wanted));
	});
	for (const std::string &line : result.lines) {
		if (line.compare(0, 6, "error ") == 0)
			library.error = line.substr(6);
		else if (line.compare(0, 5, "path ") == 0)
			library.path = line.substr(5);
		else if (line.compare(0, 8, "version ") == 0)
			library.version = line.substr(8);
	}
	if (!result.done)
		library.error = "the process that loaded it " + result.end;
	library.file = real_path(library.path);
	if (!library.file.empty())
		library.maker = wanted.find("libnda") == 0 ? "nda" : maker_of(library.file);
	return library;
}

std::vector<std::string> usual_directories()
{
	std::vector<std::string> found = {"/usr/local/Ascend/driver/lib64/driver",
		"/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib"};
	const std::string verbs =
		extend::object_path(reinterpret_cast<const void *>(&ibv_get_device_list));
	if (const size_t slash = verbs.rfind('/'); slash != std::string::npos)
		found.push_back(verbs.substr(0, slash));
	return found;
}

bool has_file(const std::vector<Library> &libraries, const std::string &file)
{
	return std::any_of(libraries.begin(), libraries.end(),
		[&](const Library &library) { return library.file == file; });
}

} // namespace

Libraries gather_libraries(const Machine &machine)
{
	Libraries libraries;
	libraries.soname = find_library("libibv_extend.so.4");
	libraries.unversioned = find_library("libibv_extend.so");
	libraries.nda = find_library("libnda.so.1");
	for (const std::string &directory : usual_directories())
		for (const char *name : {"/libibv_extend.so.4", "/libibv_extend.so"}) {
			const std::string path = machine.root + directory + name;
			const std::string file = real_path(path);
			if (file.empty() || file == libraries.soname.file ||
				file == libraries.unversioned.file ||
				has_file(libraries.others, file))
				continue;
			Library other;
			other.path = path;
			other.file = file;
			other.maker = maker_of(file);
			libraries.others.push_back(other);
		}
	return libraries;
}

} // namespace nda::info
