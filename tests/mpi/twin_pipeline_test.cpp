// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every schedule, on every mesh with stages, computes what one rank computes.
#include <gtest/gtest.h>

#include <string>

#include "program/check.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

struct Variant {
  std::string schedule;
  workloads::Options options;
};

std::vector<Variant> variants() {
  return {
      {"gpipe", {{"stage_layers", "nearest"}, {"vocabulary", "on"}}},
      {"1f1b", {{"handover", "scattered"}, {"input", "pinned"}}},
      {"1f1b", {{"stage_layers", "nearest"}, {"tp_output", "gather"}, {"handover", "scattered"}}},
      {"interleaved", {{"v", "2"}}},
      {"interleaved", {{"v", "3"}, {"overlap", "off"}, {"vocabulary", "on"}}},
      {"interleaved", {{"v", "2"}, {"stage_layers", "nearest"}, {"handover", "scattered"}}},
      {"zb-h1", {}},
      {"zb-h1", {{"vocabulary", "on"}, {"optimizer", "adam"}, {"tp_output", "gather"}}},
      {"zb-h1", {{"overlap", "off"}, {"handover", "scattered"}, {"stage_layers", "nearest"}}}};
}

/// Divides by many meshes; uneven stages where `nearest` is asked for.
workloads::Model model_for(const mesh::Shape& mesh, const Variant& variant) {
  workloads::Model model = gated_model();
  const int chunks = variant.schedule == "interleaved" ? std::stoi(variant.options.at("v")) : 1;
  const bool uneven = variant.options.contains("stage_layers");
  model.layers = 2 * mesh.pp * chunks - (uneven ? 1 : 0);
  return model;
}

TEST(Twin, OfEveryScheduleEqualsOneRank) {
  const Ranks ranks;
  unsigned turn = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    if (mesh.pp == 1) continue;
    for (const Variant& variant : variants()) {
      ++turn;
      workloads::Request base{.model = model_for(mesh, variant), .options = variant.options};
      base.options["schedule"] = variant.schedule;
      base.options["microbatch"] = "2";
      base.options["microbatches"] = std::to_string(2 * mesh.pp * mesh.dp);
      base.precision = turn % 3 == 0 ? program::Precision::f32 : program::Precision::f64;
      const workloads::Request request =
          workloads::find_workload("hybrid").scale(base, mesh, workloads::Scaling::strong);
      expect_equal_to_one_rank(ranks, {.name = variant.schedule + " on " + mesh::to_string(mesh),
                                       .request = request,
                                       .streams = turn % 2 == 0 ? executor::HostStreams::folded
                                                                : executor::HostStreams::threads});
    }
  }
  EXPECT_GE(turn, 9U);
}

}  // namespace
}  // namespace isoscale::runner
