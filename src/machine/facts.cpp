// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <functional>
#include <set>
#include <utility>

#include "machine/hwloc_handles.hpp"
#include "machine/procfs_and_cgroups.hpp"

namespace isoscale::machine {
namespace {

/// Loads packages, cores, NUMA nodes and logical CPUs of the whole node, also those that a
/// scheduler withholds from this process. Caches and devices are left out to save time, since every
/// rank of a node loads a topology. `without` names a component of hwloc that is not used; nullptr
/// = all are used. Returns null if hwloc cannot read the topology.
Topology load_topology(const char* without) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  Topology topology{raw};
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  // hwloc gives a NUMA node the CPUs of its parent object. Where a package has several NUMA nodes,
  // the parent is a group, so groups are kept.
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (without != nullptr) {
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, without);
  }
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
      hwloc_topology_load(raw) != 0) {
    return {};
  }
  return topology;
}

/// Loads the topology as Linux describes it. hwloc's own component "x86" is used only if Linux does
/// not know the cores: it moves this process to each CPU in turn to query it, so that 64 ranks on a
/// node would wait for each other.
Topology load_topology() {
  Topology topology = load_topology("x86");
  const bool known = topology && hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0;
  return known ? std::move(topology) : load_topology(nullptr);
}

std::optional<int> count_of(const Topology& topology, hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology.get(), type);
  return count > 0 ? std::optional{count} : std::nullopt;
}

/// Returns the processor's name, which hwloc stores for the first package or for the machine.
std::optional<std::string> cpu_model_of(const Topology& topology) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology.get(), type, 0);
    const char* const model =
        object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, "CPUModel");
    if (model != nullptr && *model != '\0') return model;
  }
  return std::nullopt;
}

/// Returns the CPUs that the process may run on: those that it is bound to and also allowed to use.
/// Null if unknown.
Bitmap binding_of(const Topology& topology) {
  Bitmap set{hwloc_bitmap_alloc()};
  if (!set || hwloc_get_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_PROCESS) != 0) return {};
  hwloc_bitmap_and(set.get(), set.get(), hwloc_topology_get_allowed_cpuset(topology.get()));
  return set;
}

std::vector<int> cpus_in(hwloc_const_bitmap_t set) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu != -1; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  return cpus;
}

void add_numa_nodes(MachineFacts& facts, const Topology& topology) {
  facts.numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    facts.numa_cpus[std::to_string(node->os_index)] = cpus_in(node->cpuset);
  }
}

void add_binding(MachineFacts& facts, const Topology& topology) {
  const Bitmap set = binding_of(topology);
  if (!set) return;
  facts.bound_cpus = cpus_in(set.get());
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr) {
    if (hwloc_bitmap_intersects(core->cpuset, set.get()) != 0) {
      // The logical index is used, since os_index starts anew on every socket.
      facts.bound_core_ids.push_back(static_cast<int>(core->logical_index));
    }
  }
  // Some virtual machines do not distinguish cores from logical CPUs.
  if (facts.bound_core_ids.empty()) facts.bound_core_ids = facts.bound_cpus;
}

void add_topology(MachineFacts& facts) {
  const Topology topology = load_topology();
  if (!topology) return;
  facts.cpu_model = cpu_model_of(topology);
  facts.sockets = count_of(topology, HWLOC_OBJ_PACKAGE);
  facts.cores = count_of(topology, HWLOC_OBJ_CORE);
  add_numa_nodes(facts, topology);
  add_binding(facts, topology);
}

}  // namespace

std::size_t count_with_own_core(const std::vector<std::vector<int>>& cores) {
  // This is bipartite matching by augmenting paths.
  std::map<int, std::size_t> taken;  // for each core, the process that has it
  std::set<int> tried;
  const std::function<bool(std::size_t)> match = [&](std::size_t process) {
    // A free core is tried first, so that paths are long only if cores are few.
    for (const int core : cores[process]) {
      if (taken.try_emplace(core, process).second) return true;
    }
    for (const int core : cores[process]) {
      if (!tried.insert(core).second || !match(taken[core])) continue;
      taken[core] = process;
      return true;
    }
    return false;
  };
  std::size_t matched = 0;
  for (std::size_t process = 0; process < cores.size(); ++process) {
    tried.clear();
    if (match(process)) ++matched;
  }
  return matched;
}

MachineFacts machine_facts() {
  MachineFacts facts;
  utsname system{};
  uname(&system);  // fails only for an invalid address
  facts.host = system.nodename;
  facts.os = fmt::format("{} {}", system.sysname, system.release);
  add_topology(facts);
  // On x86, POWER and some ARM kernels the model has one of these keys; other kernels have none.
  const std::string cpuinfo = facts.cpu_model ? "" : read_file("/proc/cpuinfo").value_or("");
  for (const std::string_view key : {"model name", "cpu", "Processor"}) {
    if (!facts.cpu_model) facts.cpu_model = field_of(cpuinfo, key);
  }
  facts.memory_total = meminfo_field(read_file("/proc/meminfo").value_or(""), "MemTotal");
  facts.memory_available = memory_available(read_file);
  facts.cpu_quota = cpu_limit(read_file);
  return facts;
}

}  // namespace isoscale::machine
