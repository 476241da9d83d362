// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/numa_memory_binding.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "machine/hwloc_handles.hpp"

namespace isoscale::machine {
namespace {

constexpr int thread_by_node = HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET;

[[noreturn]] void refuse(int node, const char* what) {
  const int code = errno;
  throw PlacementError(fmt::format("cannot place memory on NUMA node {}: {} ({})", node, what,
                                   std::generic_category().message(code)));
}

std::string nodes_of(hwloc_topology_t topology) {
  std::string text;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", node->os_index);
  }
  return text;
}

}  // namespace

struct MemoryOnNode::Before {
  Topology topology;
  Bitmap set;
  hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
};

MemoryOnNode::MemoryOnNode(int node) {
  auto before = std::make_unique<Before>();
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) refuse(node, "hwloc does not start");
  before->topology.reset(topology);
  if (hwloc_topology_load(topology) != 0) refuse(node, "hwloc cannot read the topology");
  const hwloc_obj_t object =
      node < 0 ? nullptr
               : hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(node));
  if (object == nullptr) {
    throw PlacementError(
        fmt::format("there is no NUMA node {} that this process may use; there are {}", node,
                    nodes_of(topology)));
  }
  before->set.reset(hwloc_bitmap_alloc());
  if (!before->set ||
      hwloc_get_membind(topology, before->set.get(), &before->policy, thread_by_node) != 0) {
    refuse(node, "the policy that holds is unknown");
  }
  // The binding is strict: otherwise pages would silently come from other nodes once this one is
  // full.
  if (hwloc_set_membind(topology, object->nodeset, HWLOC_MEMBIND_BIND,
                        thread_by_node | HWLOC_MEMBIND_STRICT) != 0) {
    refuse(node, "the system does not allow it");
  }
  before_ = std::move(before);
}

MemoryOnNode::~MemoryOnNode() {
  // This policy was in force before, so the system accepts it again.
  static_cast<void>(hwloc_set_membind(before_->topology.get(), before_->set.get(), before_->policy,
                                      thread_by_node));
}

}  // namespace isoscale::machine
