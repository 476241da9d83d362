// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/search.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::analysis::predict {
namespace {

using workloads::Options;
using workloads::Request;
using workloads::Scaling;
using workloads::Workload;

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int i = 1; i <= number; ++i) {
    if (number % i == 0) result.push_back(i);
  }
  return result;
}

class Space {
 public:
  Space(const Question& question, int ranks)
      : question_(question),
        workload_(*question.workload),
        ranks_(ranks),
        limits_(workload_.limits(question.base, Scaling::strong)) {
    // The global batch is the option `batch`, or follows from microbatch and microbatches. If
    // `base` has only `batch`, the microbatch is set to 1, since the default one may not divide it;
    // the global batch does not depend on it.
    Request alone = question.base;
    const auto given = [&](std::string_view key) { return alone.options.contains(key); };
    if (given("batch") && !given("microbatch") && !given("microbatches")) {
      alone.options["microbatch"] = "1";
    }
    const Request whole = workload_.scale(alone, {}, Scaling::strong);
    batch_ = workloads::stack::option_of(whole, "batch", &workloads::stack::TrainingOptions::batch);
  }

  [[nodiscard]] SearchSpace all() {
    for (const int tp : extents(mesh::Axis::tp, ranks_)) {
      for (const int cp : extents(mesh::Axis::cp, ranks_ / tp)) {
        for (const int ep : extents(mesh::Axis::ep, ranks_ / (tp * cp))) {
          for (const int pp : extents(mesh::Axis::pp, ranks_ / (tp * cp * ep))) {
            const mesh::Shape shape{
                .tp = tp, .cp = cp, .ep = ep, .dp = ranks_ / (tp * cp * ep * pp), .pp = pp};
            const auto dp = question_.mesh.find(mesh::Axis::dp);
            if (dp != question_.mesh.end() && dp->second != shape.dp) continue;
            if (shape.dp > 1 && !workload_.axes.contains(mesh::Axis::dp)) continue;
            const bool is_plain = shape.dp == 1 && !question_.mesh.contains(mesh::Axis::ep);
            // With dp = 1, this mesh shards states over the same ranks as the mesh that has ep = 1
            // and these ranks along dp, so it would be a duplicate.
            if (shards_over_ep(shape) && is_plain) continue;
            if (!mesh::violation(shape, limits_)) add_mesh(shape);
          }
        }
      }
    }
    return std::move(space_);
  }

 private:
  [[nodiscard]] bool is_fixed(std::string_view key) const {
    return !has_option(workload_, key) ||
           std::ranges::find(question_.fixed, key) != question_.fixed.end();
  }

  /// Returns the extents that an axis may have. They all divide `available`, the number of ranks
  /// that the axes before it leave.
  [[nodiscard]] std::vector<int> extents(mesh::Axis axis, int available) const {
    if (const auto named = question_.mesh.find(axis); named != question_.mesh.end()) {
      return available % named->second == 0 ? std::vector<int>{named->second} : std::vector<int>{};
    }
    if (!workload_.axes.contains(axis)) return {1};
    if (axis == mesh::Axis::cp && question_.base.mesh.cp == 1) return {1};
    if (axis == mesh::Axis::ep && !has_experts()) {
      if (!may_shard()) return {1};
      // Without experts, states are sharded over dp (ep = 1), or inside a node over the ranks that
      // tp and cp leave (ep = their number).
      const int node_ranks = question_.node_ranks;
      const int taken = ranks_ / available, shards = node_ranks / taken;
      const bool fills = shards > 1 && shards * taken == node_ranks && available % shards == 0;
      return fills ? std::vector<int>{1, shards} : std::vector<int>{1};
    }
    std::vector<int> result = divisors(available);
    if (axis == mesh::Axis::tp) {
      std::erase_if(result, [&](int tp) { return tp > question_.node_ranks; });
    }
    return result;
  }

  /// True if the search may shard optimizer states, gradients or weights.
  [[nodiscard]] bool may_shard() const {
    const Options& given = question_.base.options;
    const auto zero = given.find("zero");
    return has_option(workload_, "zero") &&
           (!is_fixed("zero") || (zero != given.end() && zero->second != "0"));
  }

  /// True if the ranks along ep share sharded states, because the model has no experts.
  [[nodiscard]] bool shards_over_ep(const mesh::Shape& shape) const {
    return shape.ep > 1 && !has_experts();
  }

  [[nodiscard]] bool has_experts() const {
    return std::ranges::any_of(
        limits_, [](const mesh::Constraint& limit) { return limit.axis == mesh::Axis::ep; });
  }

  /// Alternative values of one or more options; empty Options change nothing.
  using Choices = std::vector<Options>;
  /// Returns all values that the option may have, or no change if the option is fixed.
  [[nodiscard]] Choices values(std::string_view key) const {
    if (is_fixed(key)) return {{}};
    Choices result;
    for (const auto& value : workloads::find_option(workload_.options, key).choices)
      result.push_back({{std::string{key}, std::string{value}}});
    return result;
  }

  /// Returns the schedules, each with its v (chunks of layers per stage). There is a single one if
  /// the mesh has one pipeline stage.
  [[nodiscard]] Choices schedules(const mesh::Shape& shape) const {
    if (shape.pp == 1 && !is_fixed("schedule")) return {{{"schedule", "1f1b"}}};
    if (shape.pp == 1) return {{}};
    Choices result;
    for (Options& chosen : values("schedule")) {
      Options all = question_.base.options;
      for (const auto& [key, value] : chosen) all[key] = value;
      const auto schedule = all.find("schedule");
      const bool interleaves = schedule != all.end() && schedule->second == "interleaved";
      if (!interleaves || is_fixed("v")) {
        result.push_back(chosen);
        continue;
      }
      for (const int v : divisors(std::max(1, question_.base.model.layers / shape.pp))) {
        if (v == 1) continue;
        chosen["v"] = std::to_string(v);
        result.push_back(chosen);
      }
    }
    return result;
  }

  /// Returns the powers of two that, as microbatch, divide the batch of each replica evenly.
  [[nodiscard]] Choices microbatches(const mesh::Shape& shape) const {
    if (batch_ == 0 || is_fixed("microbatch") || is_fixed("microbatches")) return {{}};
    Choices result;
    const long long replicas = static_cast<long long>(shape.dp) * shape.ep;
    for (long long one = 1; batch_ % (one * replicas) == 0; one *= 2) {
      result.push_back({{"batch", std::to_string(batch_)}, {"microbatch", std::to_string(one)}});
    }
    return result;
  }

  void add_mesh(const mesh::Shape& shape) {
    const int replicas = shards_over_ep(shape) ? shape.ep : shape.dp;
    Choices zeros = replicas > 1 || is_fixed("zero") ? values("zero") : Choices{{{"zero", "0"}}};
    // Stage 3 of zero sends weights for each microbatch, so it gains most by groups inside a node.
    // It is the only stage that a search tries with them.
    const bool is_searched = !is_fixed("zero") && !question_.mesh.contains(mesh::Axis::ep);
    if (shards_over_ep(shape) && is_searched) {
      zeros = {{{"zero", "3"}}};
    } else if (shards_over_ep(shape)) {
      std::erase_if(zeros, [](const Options& chosen) {
        return chosen.contains("zero") && chosen.at("zero") == "0";
      });
    }
    const bool splits = shape.tp > 1 && !question_.base.options.contains("sequence_parallel");
    const std::array choices{microbatches(shape), schedules(shape), zeros, values("recompute"),
                             splits ? values("sequence_parallel") : Choices{{}}};
    if (choices.front().empty()) ++space_.impossible;
    add_all(question_.base, shape, choices);
  }

  /// Adds the request with each combination of the choices to the search space.
  void add_all(const Request& request, const mesh::Shape& shape, std::span<const Choices> choices) {
    if (choices.empty()) return add(request, shape);
    for (const Options& chosen : choices.front()) {
      Request next = request;
      if (chosen.contains("microbatch")) next.options.erase("microbatches");
      // The option gather=next_step exists only with zero=1 and zero=2. If it was assumed and not
      // given by the user, it is removed for other stages; one that the user gave stays and is then
      // refused.
      const auto zero = chosen.find("zero");
      if (zero != chosen.end() && zero->second != "1" && zero->second != "2" &&
          !is_fixed("gather")) {
        next.options.erase("gather");
      }
      for (const auto& [key, value] : chosen) next.options[key] = value;
      add_all(next, shape, choices.subspan(1));
    }
  }

  void add(const Request& request, const mesh::Shape& shape) {
    try {
      space_.requests.push_back(workload_.scale(request, shape, Scaling::strong));
    } catch (const base::UsageError&) {
      ++space_.impossible;  // these options exclude each other
    }
  }

  const Question& question_;
  const Workload& workload_;
  int ranks_;
  std::vector<mesh::Constraint> limits_;
  long long batch_ = 0;  ///< 0 = the workload has no batch
  SearchSpace space_;
};

}  // namespace

SearchSpace search_space(const Question& question, int ranks) {
  return Space{question, ranks}.all();
}

}  // namespace isoscale::analysis::predict
