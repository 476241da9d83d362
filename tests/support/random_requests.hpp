// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "mesh/mesh_request.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/stack_samples.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// Random combinations of mesh, model and options of the hybrid workload, drawn from its table of
/// options: what is added there is drawn too.
namespace isoscale::workloads {

class RandomRequests {
 public:
  /// Options in `left_out` keep their defaults.
  explicit RandomRequests(std::uint64_t seed, std::set<std::string, std::less<>> left_out = {})
      : random_(seed), other_random_(seed), left_out_(std::move(left_out)) {}

  /// The next combination that the workload does not refuse; drawn by remainder, alike everywhere.
  Request next(int ranks) {
    for (;;) {
      const std::optional<Request> drawn = draw(ranks);
      if (!drawn) continue;
      for (const auto& [key, value] : drawn->options) seen_[key].insert(value);
      return *drawn;
    }
  }

  /// Whether an option is drawn: all choices are, but for those that change no op of a program.
  [[nodiscard]] static bool draws(const OptionSpec& spec) {
    return spec.key != "registration" && spec.key != "fp8_accumulate" && !values_of(spec).empty();
  }

  /// Draws that were refused, and the values of each option that were not.
  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] const std::map<std::string, std::set<std::string>>& seen() const { return seen_; }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  /// Each prime of `ranks` goes to one of the axes.
  mesh::Shape mesh_of(int ranks, mesh::AxisSet axes) {
    std::array<int, mesh::all_axes.size()> extents{};  // in the order of Shape
    extents.fill(1);
    std::vector<mesh::Axis> known;
    for (const mesh::Axis axis : mesh::all_axes) {
      if (axes.contains(axis)) known.push_back(axis);
    }
    for (int prime = 2; ranks > 1; ++prime) {
      for (; ranks % prime == 0; ranks /= prime) {
        extents[static_cast<std::size_t>(one_of(known))] *= prime;
      }
    }
    const auto [tp, cp, ep, dp, pp] = extents;
    return {.tp = tp, .cp = cp, .ep = ep, .dp = dp, .pp = pp};
  }

  /// Some values of options that are not choices; none: the option keeps its default.
  static std::vector<std::string> values_of(const OptionSpec& spec) {
    if (spec.type == OptionType::choice) return {spec.choices.begin(), spec.choices.end()};
    static const std::map<std::string, std::vector<std::string>, std::less<>> known{
        {"bucket", {"4kB", "64kB", "25MiB"}},
        {"reduce_bucket", {"4kB", "64kB"}},
        {"gather_bucket", {"4kB", "64kB"}},
        {"prefetch", {"0", "1", "3"}},
        {"v", {"1", "2", "3"}},
        {"stage_layers", {"equal", "nearest", "lighter-ends"}},
        {"chunks", {"1", "2", "4"}},
        {"partition", {"equal", "skewed:2", "skewed:3", "proportional"}},
        {"topk", {"1", "2", "4"}},
        {"skew", {"0", "100", "1000"}},
        {"capacity", {"none", "1.25", "50%"}},
        {"compression_block", {"64", "1024"}},
    };
    const auto found = known.find(spec.key);
    return found == known.end() ? std::vector<std::string>{} : found->second;
  }

  std::optional<Request> draw(int ranks) {
    const Workload& hybrid = find_workload("hybrid");
    const bool gated = below(2) == 0;
    const std::string heads = gated ? "heads=32 gated=1" : "heads=16";
    Request base{.model = test_model("hidden=96 ffn=384 kv_heads=16 head_size=8 layers=24 "
                                     "sequence=64 vocabulary=384 " +
                                     heads),
                 .precision = below(4) == 0 ? Precision::f32 : Precision::f64,
                 .options = {}};
    for (const OptionSpec& spec : hybrid.options) {
      const std::vector<std::string> values = values_of(spec);
      if (!draws(spec) || left_out_.contains(spec.key) || spec.key == "async_reduce") continue;
      if (below(3) == 0) continue;
      base.options[std::string{spec.key}] = one_of(values);
    }
    // Experts exclude so much: every fourth has them, and only these have ranks along ep.
    const bool has_experts = below(4) == 0;
    mesh::AxisSet axes = hybrid.axes;
    if (has_experts) {
      base.options["experts"] = one_of<std::string>({"4", "8", "16"});
      for (const char* key :
           {"zero", "offload", "strategy", "compression", "partition", "elementwise", "recompute",
            "tp_output", "sequence_parallel", "ring", "chunks"}) {
        base.options.erase(key);
      }
    } else {
      axes = {mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp, mesh::Axis::pp};
    }
    mesh::Shape mesh = mesh_of(ranks, axes);
    base.options["async_reduce"] = other_random_() % 2 == 0 ? "on" : "off";
    base.options["reduces_in_flight"] = std::to_string(other_random_() % 3);
    const auto zero = base.options.find("zero");
    if (zero != base.options.end() && zero->second != "0" && other_random_() % 2 == 0) {
      mesh.ep = mesh.dp % 2 == 0 ? 2 : mesh.dp;  // with or without a copy of the states along dp
      mesh.dp /= mesh.ep;
    }
    base.options["microbatch"] = std::to_string(1 + below(2));
    base.options["microbatches"] =
        std::to_string(mesh.dp * mesh.ep * mesh.pp * static_cast<int>(1 + below(2)));
    try {
      if (mesh::violation(mesh, hybrid.limits(base, Scaling::strong))) return std::nullopt;
      Request request = hybrid.scale(base, mesh, Scaling::strong);
      for (int rank = 0; rank < ranks; ++rank) request.speed_of_rank.push_back(1 + rank % 5);
      static_cast<void>(hybrid.twin(request));
      return request;
    } catch (const base::UsageError&) {
      ++refused_;
      return std::nullopt;
    }
  }

  std::mt19937_64 random_;
  std::mt19937_64 other_random_;  ///< of draws that change no other draw
  std::set<std::string, std::less<>> left_out_;
  int refused_ = 0;
  std::map<std::string, std::set<std::string>> seen_;
};

/// "tp=2,pp=4 f64 schedule=zb-h1 zero=2 ...".
inline std::string describe(const Request& request) {
  return mesh::to_string(request.mesh) + " " + std::string{name(request.precision)} +
         text_of(request.options);
}

/// Calls `test` with the programs of the twins of `wanted` combinations, and with their numbers.
template <class Test>
void on_random_programs(std::uint64_t seed, int ranks, int wanted, const Test& test) {
  const Workload& hybrid = find_workload("hybrid");
  RandomRequests requests{seed};
  for (int i = 0; i < wanted; ++i) {
    const Request request = requests.next(ranks);
    SCOPED_TRACE(describe(request));
    test(hybrid.build(hybrid.twin(request)), i);
  }
}

}  // namespace isoscale::workloads
