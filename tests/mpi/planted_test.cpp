// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Errors planted in programs are found by comparing with one rank, and named.
#include <gmock/gmock.h>

#include "tests/mpi/plants.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/registry.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;

bool fits(const Plant& plant, const mesh::Shape& mesh) {
  return std::ranges::all_of(mesh::all_axes, [&](mesh::Axis axis) {
    return mesh[axis] > 1 || !plant.needs.contains(axis);
  });
}

std::vector<mesh::Shape> planted_meshes(int ranks) {
  if (ranks == 4) return {{.tp = 2, .dp = 2}, {.tp = 2, .pp = 2}, {.dp = 2, .pp = 2}};
  return {{.tp = 2, .dp = ranks / 4, .pp = 2}};
}

workloads::Request planted_twin(const mesh::Shape& mesh, Precision precision,
                                const workloads::Options& options) {
  workloads::Request base{.model = gated_model(), .precision = precision, .options = options};
  base.options.merge(workloads::options_of("microbatch=2 microbatches=8"));
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  return hybrid.twin(hybrid.scale(base, mesh, workloads::Scaling::strong));
}

/// Collective. Streams are folded: what a wrong program computes is then always the same.
class Planted : public testing::TestWithParam<Precision> {
 protected:
  void expect_all_caught(const std::vector<Plant>& planted, const workloads::Options& options) {
    const workloads::Workload& hybrid = workloads::find_workload("hybrid");
    const double allowed = measure::tolerance(GetParam());
    for (const mesh::Shape& mesh : planted_meshes(ranks_.world.size())) {
      const workloads::Request twin = planted_twin(mesh, GetParam(), options);
      const program::ProgramSet good = hybrid.build(twin);
      const measure::Verdict before = verify(good, twin);
      EXPECT_TRUE(before.ok) << before.detail;
      for (const Plant& plant : planted) {
        if (!fits(plant, mesh)) continue;
        const std::string where = fmt::format("{} on {}", plant.name, mesh::to_string(mesh));
        program::ProgramSet bad = good;
        EXPECT_GT(plant.into(bad), 0) << where << ": nowhere to plant it";
        const measure::Verdict verdict = verify(bad, twin);
        EXPECT_FALSE(verdict.ok) << where << ": " << verdict.detail;
        EXPECT_GT(verdict.difference.value_or(0), allowed) << where;
        EXPECT_THAT(verdict.detail, testing::ContainsRegex(
                                        "layer[0-9]+[.].*(weight|gradient)|output|input.gradient"))
            << where;
        ++caught_;
      }
    }
  }

  [[nodiscard]] bool is_wide() const {
    return GetParam() == Precision::f64 || GetParam() == Precision::f32;
  }
  [[nodiscard]] measure::Verdict verify(const program::ProgramSet& set,
                                        const workloads::Request& twin) {
    return measure::verify_programs(set, workloads::find_workload("hybrid"), twin,
                                    is_wide() ? *ranks_.folded : *ranks_.emulating, ranks_.world);
  }

  Ranks ranks_;
  int caught_ = 0;
};

TEST_P(Planted, ErrorsAreCaught) {
  std::vector<Plant> planted{plants.begin(), plants.end()};
  workloads::Options other{{"optimizer", "adam"}};
  if (is_wide()) {
    other["schedule"] = "gpipe";
  } else {
    std::erase_if(planted, [](const Plant& plant) { return !plant.is_coarse; });
  }
  for (const workloads::Options& options : {workloads::Options{{"schedule", "1f1b"}}, other}) {
    caught_ = 0;
    expect_all_caught(planted, options);
    EXPECT_GE(caught_, static_cast<int>(planted.size()));
  }
}

TEST_P(Planted, ErrorsAreCaughtInGatheredOutputs) {
  if (!is_wide()) GTEST_SKIP() << "the type rounds more than this error changes";
  expect_all_caught({gathered_plant}, {{"tp_output", "gather"}});
  EXPECT_GE(caught_, 1);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Planted,
                         testing::Values(Precision::f64, Precision::f32, Precision::tf32,
                                         Precision::f16, Precision::bf16, Precision::fp8),
                         [](const auto& precision) {
                           return std::string{program::name(precision.param)};
                         });

/// A comparison of nothing is no verification.
TEST(Verification, NeedsSomethingToCompare) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const workloads::Request twin =
      planted_twin(planted_meshes(ranks.world.size()).front(), Precision::f64, {});
  program::ProgramSet set = hybrid.build(twin);
  for (program::RankProgram& program : set.programs) {
    std::erase_if(program.observables, [](const program::Observable& observable) {
      return observable.name == "layer1.qkv.weight";
    });
  }
  const measure::Verdict partly =
      measure::verify_programs(set, hybrid, twin, *ranks.folded, ranks.world);
  EXPECT_FALSE(partly.ok);
  EXPECT_THAT(partly.detail, testing::HasSubstr("layer1.qkv.weight"));
  for (program::RankProgram& program : set.programs) program.observables.clear();
  EXPECT_FALSE(measure::verify_programs(set, hybrid, twin, *ranks.folded, ranks.world).ok);
}

}  // namespace
}  // namespace isoscale::runner
