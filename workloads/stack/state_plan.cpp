// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/state_plan.hpp"

#include <vector>

#include "workloads/options.hpp"
#include "workloads/stack/bucket_reduction.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

StatePlan state_plan_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  const Types types = types_of(request.precision);
  StatePlan plan;
  if (request.mesh.dp > 1) plan.zero = static_cast<int>(options.integer("zero"));
  if (plan.zero > 0) plan.shards = static_cast<std::uint64_t>(request.mesh.dp);
  plan.bucket_bytes = options.bytes("bucket");
  plan.element = program::element_size(plan.zero == 3 ? types.compute : travel_type(request));
  const char* own = plan.zero == 3 ? "gather_bucket" : "reduce_bucket";
  if (plan.zero > 0 && options.has(own)) plan.bucket_bytes = options.bytes(own);
  plan.prefetch = static_cast<std::size_t>(options.integer("prefetch"));
  plan.offload = options.is("offload", "weights")     ? Offload::weights
                 : options.is("offload", "optimizer") ? Offload::optimizer
                                                      : Offload::none;
  plan.host =
      options.is("offload_memory", "managed") ? program::Space::managed : program::Space::pinned;
  plan.overlaps = options.is("overlap", "on");
  return plan;
}

units::Bytes whole_states(const Request& request, int stage) {
  const Types types = types_of(request.precision);
  const std::vector<Parameter> parameters = parameters_of({request, {.pp = stage}});
  const std::uint64_t narrow = program::element_size(types.compute);
  const std::uint64_t wide = program::element_size(types.accumulate);
  const bool adam = OptionReader{option_table(), request.options}.is("optimizer", "adam");
  const std::uint64_t each =
      narrow + wide + (types.has_master() ? wide : 0) + (adam ? 2 * wide : 0);
  return units::Bytes{(parameters.back().offset + parameters.back().count()) * each};
}

}  // namespace isoscale::workloads::stack
