// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "workloads/hybrid/scale.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::hybrid {
namespace {

/// Whether QKV's weights are larger than 1/sqrt(fan in), as the nearest power of two may make them.
/// Attention multiplies three such products, and the gradients magnify its rounding again.
bool widens(int fan_in) {
  const double wanted = 1 / std::sqrt(static_cast<double>(fan_in));
  return stack::fill_deviation(stack::fill_exponent(wanted)) > wanted;
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
  while (widens(model.hidden)) model.hidden += width(16);
  model.ffn = width(64);
  model.vocabulary = width(32);
  model.sequence = fp8 ? stack::fp8_multiple : std::min(real.sequence, 8);
  model.layers = mesh.pp * std::min(2, real.layers / mesh.pp);
  return model;
}

std::size_t bucket_count(const Request& request, std::uint64_t bucket) {
  const stack::Geometry geometry{request, request.mesh.pp - 1};
  const auto element = program::element_size(stack::types_of(request.precision).accumulate);
  return stack::buckets_of(stack::parameters_of(geometry), bucket, element).size();
}

/// The bucket size that cuts the small model's gradients into as many buckets as the real one's, at
/// least two, or as many as it has tensors.
std::uint64_t small_bucket(const Request& small, std::size_t wanted) {
  const stack::Geometry geometry{small, small.mesh.pp - 1};
  const auto element = program::element_size(stack::types_of(small.precision).accumulate);
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
  const long long microbatches =
      std::max(2LL, std::min(options.integer("microbatches"), 2LL * request.mesh.pp + 1));
  const long long microbatch = std::min(options.integer("microbatch"), 2LL);
  small.options["microbatch"] = std::to_string(microbatch);
  small.options["microbatches"] = std::to_string(microbatches);
  small.options["batch"] = std::to_string(microbatch * microbatches * request.mesh.dp);
  const std::size_t wanted =
      std::max<std::size_t>(2, bucket_count(request, options.bytes("bucket")));
  small.options["bucket"] = std::to_string(small_bucket(small, wanted));
  return small;
}

}  // namespace isoscale::workloads::hybrid
