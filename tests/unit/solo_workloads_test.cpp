// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program/added_sections.hpp"
#include "program/check.hpp"
#include "program/hazards.hpp"
#include "workloads/api/workload.hpp"

/// Steps without their communication, of every workload that has steps.
namespace isoscale::workloads {
namespace {

Request small() {
  return {.model = {.name = "small",
                    .source = "test",
                    .hidden = 16,
                    .ffn = 64,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_size = 2,
                    .gated_mlp = false,
                    .layers = 4,
                    .sequence = 4,
                    .vocabulary = 32},
          .precision = Precision::f32,
          .options = {{"microbatch", "2"}, {"microbatches", "4"}}};
}

/// Those of the meshes that a workload may have.
std::vector<mesh::Shape> meshes_of(const Workload& workload) {
  std::vector<mesh::Shape> meshes{{},
                                  {.dp = 4},
                                  {.tp = 4},
                                  {.pp = 4},
                                  {.tp = 2, .dp = 2},
                                  {.dp = 2, .pp = 2},
                                  {.tp = 2, .pp = 4},
                                  {.tp = 2, .dp = 2, .pp = 2}};
  std::erase_if(meshes, [&](const mesh::Shape& shape) {
    return std::ranges::any_of(mesh::all_axes, [&](mesh::Axis axis) {
      return shape[axis] > 1 && !workload.axes.contains(axis);
    });
  });
  return meshes;
}

/// By stream, how many of its first ops do not communicate; entry i of the first i.
std::vector<std::vector<std::uint32_t>> kept_of(const program::Program& step) {
  std::vector<std::vector<std::uint32_t>> kept(program::max_streams, {0});
  for (const program::Op& op : step.ops) {
    auto& counts = kept[op.stream];
    counts.push_back(counts.back() + (communicates(kind_of(op.payload)) ? 0 : 1));
  }
  return kept;
}

/// Of the ops that are left, each comes after the same ones as before, and after no others.
void expect_same_order(const program::Program& step, const program::Program& solo) {
  const auto kept = kept_of(step);
  const auto before = program::clocks_before(step);
  const auto alone = program::clocks_before(solo);
  const auto ops = program::solo_ops(step);
  ASSERT_EQ(ops.size(), solo.ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_FALSE(communicates(kind_of(solo.ops[i].payload)));
    ASSERT_EQ(solo.ops[i].stream, step.ops[ops[i]].stream);
    for (std::size_t stream = 0; stream < program::max_streams; ++stream) {
      ASSERT_EQ(alone[i].done[stream], kept[stream][before[ops[i]].done[stream]])
          << "op " << i << ", stream " << stream;
    }
  }
}

/// An op is awaited exactly where some wait names it.
void expect_awaited(const program::Program& solo) {
  std::vector<std::vector<std::size_t>> of_stream(program::max_streams);
  for (std::size_t i = 0; i < solo.ops.size(); ++i) of_stream[solo.ops[i].stream].push_back(i);
  std::vector<bool> awaited(solo.ops.size(), false);
  for (const program::Op& op : solo.ops) {
    for (const program::Wait& wait : solo.waits_of(op)) {
      ASSERT_NE(wait.stream, op.stream);
      awaited[of_stream[wait.stream].at(wait.count - 1)] = true;
    }
  }
  for (std::size_t i = 0; i < solo.ops.size(); ++i) EXPECT_EQ(solo.ops[i].awaited, awaited[i]) << i;
}

void expect_sound(const Request& request, const Workload& workload) {
  program::ProgramSet set = workload.build(request);
  const program::Section section = program::add_solo_step(set);
  EXPECT_NO_THROW(program::check(set));
  for (const program::RankProgram& program : set.programs) {
    const program::Program& solo = program.section(section);
    EXPECT_FALSE(solo.ops.empty());
    expect_same_order(program.step(), solo);
    expect_awaited(solo);
  }
}

TEST(SoloWorkloads, PassTheCheckAndKeepTheirOrder) {
  int points = 0;
  for (const Workload& workload : registry()) {
    if (workload.is_bench()) continue;
    for (const mesh::Shape& mesh : meshes_of(workload)) {
      SCOPED_TRACE(std::string{workload.name} + ", " + mesh::to_string(mesh));
      expect_sound(workload.scale(small(), mesh, Scaling::weak), workload);
      ++points;
    }
  }
  EXPECT_GE(points, 3 * 2 + 8);  // dp, tp, pp on their axis and hybrid on all
}

TEST(SoloWorkloads, PassTheCheckWithOtherOptions) {
  const Workload& workload = find_workload("hybrid");
  for (const auto& [key, value] : Options{{"tp_output", "gather"}, {"schedule", "gpipe"}}) {
    SCOPED_TRACE(key + "=" + value);
    Request request = small();
    request.options[key] = value;
    const mesh::Shape mesh{.tp = 2, .dp = 2, .pp = 2};
    expect_sound(workload.scale(request, mesh, Scaling::weak), workload);
  }
}

}  // namespace
}  // namespace isoscale::workloads
