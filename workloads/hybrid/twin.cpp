// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "workloads/hybrid/scale.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::hybrid {
namespace {

constexpr long long most_chunks = 4;

/// At least two positions for each part into which cp, sequence parallelism and chunks cut the
/// sequence; each rank has a multiple of `unit`.
int small_sequence(const Request& request, int unit) {
  const OptionReader options{stack::option_table(), request.options};
  const bool splits = options.is("sequence_parallel", "on");
  const int chunks = static_cast<int>(std::min(options.integer("chunks"), most_chunks));
  const int parts =
      request.mesh.cp * (splits ? request.mesh.tp : 1) * (request.mesh.tp > 1 ? chunks : 1);
  const int least = std::max(std::min(request.model.sequence, 8), parts > 1 ? 2 * parts : 1);
  const int multiple = std::lcm(parts, unit * request.mesh.cp);
  return (least + multiple - 1) / multiple * multiple;
}

/// Widths scaled down to a few multiples of what tp must divide; at most two layers a stage. In fp8
/// all that GEMMs see is a multiple of 16, also where a rank has a single head.
Model small_model(const Request& request) {
  const Model& real = request.model;
  const mesh::Shape& mesh = request.mesh;
  const bool fp8 = stack::types_of(request.precision).casts_operands();
  Model model = real;
  const auto width = [&](int least) {  // a multiple of 16 columns a rank
    const int unit = 16 * mesh.tp;
    return (least + unit - 1) / unit * unit;
  };
  model.head_size = fp8 ? stack::fp8_multiple : std::min(real.head_size, 8);
  model.kv_heads = std::min(real.kv_heads, 2 * mesh.tp);
  model.heads = model.kv_heads * std::min(2, real.heads / real.kv_heads);
  model.hidden = width(32);
  model.ffn = width(64);
  model.vocabulary = width(32);
  model.sequence = small_sequence(request, fp8 ? stack::fp8_multiple : 1);
  model.layers = stack::small_layers(request);
  return model;
}

std::size_t bucket_count(const Request& request, std::uint64_t bucket) {
  const stack::Geometry geometry{request, {.pp = request.mesh.pp - 1}};
  const auto element = stack::state_plan_of(request).element;
  return stack::buckets_of(stack::parameters_of(geometry), bucket, element).size();
}

/// The bucket size that cuts the small model's gradients into as many buckets as the real one's, at
/// least two, or as many as it has tensors.
std::uint64_t small_bucket(const Request& small, std::size_t wanted) {
  const stack::Geometry geometry{small, {.pp = small.mesh.pp - 1}};
  const auto element = stack::state_plan_of(small).element;
  const std::vector<stack::Parameter> parameters = stack::parameters_of(geometry);
  const std::uint64_t total = (parameters.back().offset + parameters.back().count()) * element;
  std::uint64_t best = total;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  // Every size at which the cut can change is a sum of consecutive tensors.
  for (std::size_t first = 0; first < parameters.size(); ++first) {
    for (std::size_t last = first; last < parameters.size(); ++last) {
      const std::uint64_t size =
          (parameters[last].offset + parameters[last].count() - parameters[first].offset) * element;
      const std::size_t count = stack::buckets_of(parameters, size, element).size();
      const std::size_t distance = count > wanted ? count - wanted : wanted - count;
      if (distance < best_distance) {
        best_distance = distance;
        best = size;
      }
    }
  }
  return best;
}

}  // namespace

Request twin(const Request& request) {
  const OptionReader options{stack::option_table(), request.options};
  Request small = request;
  small.model = small_model(request);
  small.keep = Keep::observables;
  // Interleaved takes them in turns of pp.
  const bool in_turns = options.is("schedule", "interleaved");
  const long long some = 2LL * request.mesh.pp + (in_turns && request.mesh.pp > 1 ? 0 : 1);
  const long long microbatches = std::max(2LL, std::min(options.integer("microbatches"), some));
  const long long microbatch = std::min(options.integer("microbatch"), 2LL);
  small.options["microbatch"] = std::to_string(microbatch);
  small.options["microbatches"] = std::to_string(microbatches);
  small.options["batch"] =
      std::to_string(microbatch * microbatches * request.mesh.dp * request.mesh.ep);
  if (options.integer("experts") > 0) {
    small.options["experts"] = std::to_string(stack::small_experts(request));
  }
  small.options["stage_layers"] = stack::small_stage_layers(request);
  small.options["chunks"] = std::to_string(std::min(options.integer("chunks"), most_chunks));
  const std::size_t wanted =
      std::max<std::size_t>(2, bucket_count(request, stack::state_plan_of(request).bucket_bytes));
  for (const char* key : {"reduce_bucket", "gather_bucket"}) small.options.erase(key);
  small.options["bucket"] = std::to_string(small_bucket(small, wanted));
  stack::shrink_data_options(small);
  return small;
}

Request reference(const Request& twin) {
  Request one = twin;
  one.mesh = {};
  one.precision = Precision::f64;
  const long long microbatches =
      OptionReader{stack::option_table(), twin.options}.integer("microbatches");
  for (const char* key :
       {"sequence_parallel", "chunks", "ring", "recompute", "zero", "prefetch", "offload",
        "offload_memory", "expert_batch", "expert_placement", "transport"}) {
    one.options.erase(key);
  }
  one.options["microbatches"] = std::to_string(microbatches * twin.mesh.dp * twin.mesh.ep);
  stack::forget_data_options(one);
  return one;
}

}  // namespace isoscale::workloads::hybrid
