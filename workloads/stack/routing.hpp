// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/workload.hpp"

/// Which experts each token goes to: drawn when a program is built, a function of seed, layer,
/// sample and position alone, so that every mesh routes alike.
namespace isoscale::workloads::stack {

/// In the place of an expert: the token is dropped there, its expert was full.
inline constexpr std::uint32_t no_expert = ~std::uint32_t{0};

struct Routing {
  std::uint32_t experts = 0;  ///< of a layer, over all ranks; 0 = a dense MLP
  std::uint32_t topk = 1;     ///< experts of a token
  /// Tokens that an expert takes of one sample; 0 = all that come.
  std::uint64_t capacity = 0;
  std::uint64_t sequence = 0;  ///< positions of a sample
  double exponent = 0;  ///< of Zipf's law: the r-th expert of a layer is drawn as 1/r^exponent; 0 =
                        ///< dealt out evenly
  std::uint64_t seed = 0;

  [[nodiscard]] bool has_experts() const { return experts > 0; }
};
[[nodiscard]] Routing routing_of(const Request& request);

/// The factor of a capacity, "1.25" or "125%"; 0 for "none" and "0". Throws base::UsageError for
/// other texts.
[[nodiscard]] double capacity_factor(std::string_view text);

/// The experts of each position of a sample, `topk` each, all different; no_expert where one was
/// full, later positions first.
[[nodiscard]] std::vector<std::uint32_t> route(const Routing& routing, int layer,
                                               std::uint64_t sample);

/// What routing does to a step, over all ranks and layers.
struct RouteStats {
  std::uint64_t routed = 0;   ///< tokens x topk
  std::uint64_t dropped = 0;  ///< of these: their expert was full
  std::uint64_t padded = 0;   ///< rows of zeros that are multiplied beside
  double imbalance = 1;       ///< rows of the rank that multiplies most, over the mean of all
};
/// Of a request that has been scaled.
[[nodiscard]] RouteStats route_stats(const Request& request);

}  // namespace isoscale::workloads::stack
