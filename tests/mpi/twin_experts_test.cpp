// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Experts on every mesh compute what one rank computes that has them all.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

/// Every mesh of `ranks` ranks over tp, cp, ep, dp and pp.
std::vector<mesh::Shape> all_meshes(int ranks) {
  std::vector<mesh::Shape> meshes;
  for (const mesh::Shape& without : meshes_of(ranks)) {
    for (int cp = 1; cp <= without.dp; ++cp) {
      for (int ep = 1; cp * ep <= without.dp; ++ep) {
        if (without.dp % (cp * ep) != 0) continue;
        mesh::Shape mesh = without;
        mesh.cp = cp;
        mesh.ep = ep;
        mesh.dp = without.dp / (cp * ep);
        meshes.push_back(mesh);
      }
    }
  }
  return meshes;
}

/// With and without dropped tokens, few and many experts for a token, experts that nobody comes to.
std::vector<workloads::Options> routings() {
  return {
      {{"experts", "8"}, {"topk", "2"}},
      {{"experts", "8"}, {"topk", "1"}, {"skew", "400"}, {"schedule", "gpipe"}},
      {{"experts", "8"}, {"topk", "3"}, {"skew", "80"}, {"capacity", "1.25"}, {"overlap", "off"}},
      {{"experts", "8"},
       {"topk", "2"},
       {"skew", "120"},
       {"capacity", "75%"},
       {"expert_batch", "padded"},
       {"optimizer", "adam"}},
      {{"experts", "8"},
       {"topk", "1"},
       {"skew", "1000"},
       {"capacity", "50%"},
       {"schedule", "zb-h1"},
       {"vocabulary", "on"}},
      {{"experts", "16"},
       {"topk", "4"},
       {"capacity", "1.0"},
       {"expert_batch", "padded"},
       {"schedule", "interleaved"},
       {"stage_layers", "nearest"},
       {"handover", "scattered"},
       {"input", "pinned"}},
  };
}

TwinCase case_of(const workloads::Model& model, const mesh::Shape& mesh,
                 const workloads::Options& options, program::Precision precision,
                 workloads::Scaling scaling) {
  workloads::Request base{.model = model, .precision = precision, .options = options};
  base.options["microbatch"] = "2";
  base.options["microbatches"] = "24";
  if (model.layers % mesh.pp != 0) base.options["stage_layers"] = "nearest";
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  TwinCase result{.name = fmt::format("{} on {}, {}, {}", model.name, mesh::to_string(mesh),
                                      program::name(precision), workloads::name(scaling)),
                  .request = hybrid.scale(base, mesh, scaling)};
  for (const auto& [key, value] : options) result.name += fmt::format(" {}={}", key, value);
  return result;
}

TEST(TwinExperts, OfEveryMeshEqualOneRank) {
  const Ranks ranks;
  const std::array models{gated_model(), workloads::load_model("tiny")};
  const auto meshes = all_meshes(ranks.world.size());
  const auto options = routings();
  const std::size_t stride = meshes.size() > 8 ? 2 : 1;
  for (std::size_t m = 0; m < meshes.size(); ++m) {
    for (std::size_t o = m % stride; o < options.size(); o += stride) {
      const bool is_weak = (m + o) % 3 == 0, is_f32 = (m + 2 * o) % 5 == 4;
      const auto& model = models[(m + o) % models.size()];
      const auto scaling = is_weak ? workloads::Scaling::weak : workloads::Scaling::strong;
      workloads::Request base{.model = model, .options = options[o]};
      base.options["stage_layers"] = "nearest";  // what pp must divide, case_of sees to
      if (mesh::violation(meshes[m], workloads::find_workload("hybrid").limits(base, scaling))) {
        continue;
      }
      TwinCase point = case_of(model, meshes[m], options[o],
                               is_f32 ? program::Precision::f32 : program::Precision::f64, scaling);
      point.streams = o % 2 == 0 ? executor::HostStreams::threads : executor::HostStreams::folded;
      expect_equal_to_one_rank(ranks, point);
    }
  }
}

TEST(TwinExperts, OfSixtyFourRanksAreFreeOfDeadlock) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  if (comm::Communicator::world().rank() != 0) return;
  for (const mesh::Shape& mesh :
       {mesh::Shape{.ep = 8, .dp = 8}, mesh::Shape{.tp = 2, .ep = 4, .dp = 2, .pp = 4},
        mesh::Shape{.tp = 2, .cp = 2, .ep = 4, .dp = 2, .pp = 2},
        mesh::Shape{.ep = 4, .dp = 2, .pp = 8}}) {
    for (workloads::Options options : routings()) {
      const auto twin = hybrid.twin(
          case_of(gated_model(), mesh, options, program::Precision::f32, workloads::Scaling::weak)
              .request);
      EXPECT_NO_THROW(program::check(hybrid.build(twin))) << mesh::to_string(mesh);
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
