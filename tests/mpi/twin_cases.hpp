// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include "executor/host/host_executor.hpp"
#include "runner/measure/reference_check.hpp"
#include "tests/executor/emulating_executor.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// Points to verify: meshes x models x nine choices with two levels each.
namespace isoscale::runner {

/// Grouped query heads and a gated MLP; divides by 2, 3, 4 and 6.
inline workloads::Model gated_model() {
  workloads::Model model = workloads::test_model(
      "hidden=96 ffn=288 heads=24 kv_heads=12 head_size=16 gated=1 layers=12 sequence=32 "
      "vocabulary=192");
  model.tied_embedding = false;
  return model;
}

inline std::array<workloads::Model, 3> twin_models() {
  return {workloads::load_model("tiny"), gated_model(), workloads::load_model("gpt-1.3b")};
}

/// Bit i of a case says which level factor i has.
inline constexpr unsigned factor_count = 9;
inline constexpr unsigned level_sets = 1U << factor_count;

struct TwinCase {
  std::string name;
  workloads::Request request;  ///< of the point, not of its twin
  executor::HostStreams streams = executor::HostStreams::folded;
};

/// Every mesh of `ranks` ranks over dp, tp and pp.
inline std::vector<mesh::Shape> meshes_of(int ranks) {
  std::vector<mesh::Shape> meshes;
  for (int tp = 1; tp <= ranks; ++tp) {
    for (int dp = 1; tp * dp <= ranks; ++dp) {
      if (ranks % (tp * dp) != 0) continue;
      meshes.push_back({.tp = tp, .dp = dp, .pp = ranks / (tp * dp)});
    }
  }
  return meshes;
}

/// Every mesh of `ranks` ranks over dp, tp, cp, ep and pp that `is_wanted`.
template <class IsWanted>
std::vector<mesh::Shape> meshes_where(int ranks, const IsWanted& is_wanted) {
  std::vector<mesh::Shape> meshes;
  for (mesh::Shape mesh : meshes_of(ranks)) {
    const int replicas = mesh.dp;
    for (mesh.cp = 1; mesh.cp <= replicas; ++mesh.cp) {
      for (mesh.ep = 1; mesh.cp * mesh.ep <= replicas; ++mesh.ep) {
        mesh.dp = replicas / (mesh.cp * mesh.ep);
        if (mesh.cp * mesh.ep * mesh.dp == replicas && is_wanted(mesh)) meshes.push_back(mesh);
      }
    }
  }
  return meshes;
}

/// Chooses between the two levels of one factor after the other.
class Levels {
 public:
  explicit Levels(unsigned bits) : bits_(bits) {}
  template <class Value>
  Value operator()(Value zero, Value one) {
    const bool is_one = (bits_ & 1U) != 0;
    bits_ >>= 1U;
    return is_one ? one : zero;
  }

 private:
  unsigned bits_;  ///< of the factors that are left, next one lowest
};

/// The point of a mesh with these levels of what `base` leaves open, if the mesh fits its model.
inline std::vector<TwinCase> twin_case(const mesh::Shape& mesh, workloads::Request base,
                                       Levels level) {
  base.options.merge(workloads::options_of("microbatch=2 microbatches=24"));
  base.options.insert({{"schedule", level("1f1b", "gpipe")},
                       {"overlap", level("on", "off")},
                       {"tp_output", level("reduce", "gather")},
                       {"vocabulary", level("off", "on")},
                       {"optimizer", level("sgd", "adam")},
                       {"input", level("resident", "pinned")}});
  base.precision = level(program::Precision::f64, program::Precision::f32);
  const auto streams = level(executor::HostStreams::threads, executor::HostStreams::folded);
  const auto scaling = level(workloads::Scaling::strong, workloads::Scaling::weak);
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  if (mesh::violation(mesh, hybrid.limits(base, scaling))) return {};
  return {
      TwinCase{.name = fmt::format("{} on {}, {}, {}, {}{}", base.model.name, mesh::to_string(mesh),
                                   program::name(base.precision), workloads::name(scaling),
                                   streams == executor::HostStreams::folded ? "folded" : "threads",
                                   workloads::text_of(base.options)),
               .request = hybrid.scale(base, mesh, scaling),
               .streams = streams}};
}

/// Plackett & Burman, Biometrika 33 (1946) 305: any two factors meet in all pairs of levels thrice.
inline std::array<unsigned, 12> covering_levels() {
  constexpr std::array<unsigned, 11> first{1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0};
  std::array<unsigned, 12> runs{};  // the last has all levels 0
  for (unsigned run = 0; run < 11; ++run) {
    for (unsigned factor = 0; factor < factor_count; ++factor) {
      runs[run] |= first[(factor + 11 - run) % 11] << factor;
    }
  }
  return runs;
}

/// All ranks of this run, and an executor of each kind.
struct Ranks {
  [[nodiscard]] executor::Executor& executor(executor::HostStreams streams) const {
    return streams == executor::HostStreams::folded ? *folded : *threads;
  }

  comm::Communicator world = comm::Communicator::world();
  std::unique_ptr<executor::Executor> folded =
      executor::make_host_executor({.streams = executor::HostStreams::folded});
  std::unique_ptr<executor::Executor> threads =
      executor::make_host_executor({.streams = executor::HostStreams::threads});
  /// For the precisions that the host refuses to measure in.
  std::unique_ptr<executor::Executor> emulating = executor::make_emulating_executor();
};

/// Far above what rounding gives in twins this small, far below what any mistake gives.
inline constexpr double f64_difference = 1e-12;

/// Collective. Where gradients travel in a narrow type, the difference is at least `least`.
inline void expect_equal_to_one_rank(const Ranks& ranks, const TwinCase& point,
                                     std::optional<double> least = std::nullopt) {
  const measure::Verdict verdict =
      measure::verify_twin(workloads::find_workload("hybrid"), point.request,
                           ranks.executor(point.streams), ranks.world);
  EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
  const auto travels = point.request.options.find("grad_dtype");
  const bool narrow = travels != point.request.options.end() && travels->second != "same";
  if (least) {
    EXPECT_GT(verdict.difference.value_or(0), *least) << point.name;
  } else if (point.request.precision == program::Precision::f64 && !narrow) {
    EXPECT_LT(verdict.difference.value_or(1), f64_difference) << point.name;
  }
}

}  // namespace isoscale::runner
