// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Steps without their communication: written by hand, and of every workload that has steps.

#include "made_programs.hpp"
#include "program/added_sections.hpp"
#include "program/check.hpp"
#include "program/hazards.hpp"
#include "stack_samples.hpp"

namespace isoscale::program {
namespace {

using Lines = std::vector<std::string>;

/// Returns "copy 0 <- 2:1" for a copy on stream 0 that waits for the first op of stream 2; "*"
/// after the kind where others wait for it.
Lines described(const Program& program) {
  Lines lines;
  for (const Op& op : program.ops) {
    std::string line{name(kind_of(op.payload))};
    line += (op.awaited ? "* " : " ") + std::to_string(op.stream);
    for (const Wait& wait : program.waits_of(op)) {
      line += " <- " + std::to_string(wait.stream) + ":" + std::to_string(wait.count);
    }
    lines.push_back(line);
  }
  return lines;
}

/// Returns a program for a mesh of two that plays "fill 0 a", "copy 0 a b" (from a to b) and
/// "all_reduce 1 a" on the streams that are named; setup has filled the buffers a, b and c.
RankProgram playing(const Lines& ops) {
  Builder builder{{.dp = 2}};
  for (const char* stream : {"network", "side", "last"}) static_cast<void>(builder.stream(stream));
  std::map<std::string, Slice> buffers;
  for (const char* buffer : {"a", "b", "c"}) {
    builder.emit(0, fill(buffers[buffer] = builder.whole(floats(builder, 64))));
  }
  builder.begin(Section::step);
  builder.at({.phase = Phase::forward, .layer = 3});
  for (const std::string& op : ops) {
    std::istringstream words{op};
    std::string kind, from, to;
    int stream = 0;
    words >> kind >> stream >> from >> to;
    const Slice slice = buffers.at(from);
    const Payload payload = kind == "fill" ? Payload{fill(slice)}
                            : kind == "copy"
                                ? Payload{row_copy(slice, buffers.at(to))}
                                : Payload{Collective{.kind = CollectiveKind::all_reduce,
                                                     .axes = mesh::Axis::dp,
                                                     .send = slice,
                                                     .receive = slice}};
    builder.emit(static_cast<StreamId>(stream), payload);
  }
  return builder.finish();
}

TEST(SoloStep, KeepsTheOrderOfWhatDoesNotCommunicateAndNoWaitMore) {
  struct Case {
    const char* what;
    Lines step, solo, whole = {};
  };
  for (const Case& one : std::vector<Case>{
           {"in the order of the step",
            {"fill 0 a", "all_reduce 1 a", "fill 2 c", "fill 0 b", "all_reduce 1 b", "copy 2 c c"},
            {"fill 0", "fill 2", "fill 0", "copy 2"}},
           {"a wait that leads back to the same stream goes",
            {"fill 0 a", "all_reduce 1 a", "copy 0 a b"},
            {"fill 0", "copy 0"},
            {"fill* 0", "all_reduce* 1 <- 0:1", "copy 0 <- 1:1"}},
           {"on another stream it waits for what the communication waited for",
            {"fill 0 b", "fill 0 a", "all_reduce 1 a", "copy 2 a b"},
            {"fill 0", "fill* 0", "copy 2 <- 0:2"},
            {"fill 0", "fill* 0", "all_reduce* 1 <- 0:2", "copy 2 <- 1:1"}},
           {"one communication follows another",
            {"fill 0 a", "all_reduce 1 a", "all_reduce 2 a", "copy 3 a b"},
            {"fill* 0", "copy 3 <- 0:1"}},
           {"only ops that are left are counted",
            {"all_reduce 1 a", "all_reduce 1 a", "fill 1 b", "all_reduce 1 a", "copy 0 b c",
             "fill 1 a", "copy 0 a c"},
            {"fill* 1", "copy 0 <- 1:1", "fill* 1", "copy 0 <- 1:2"},
            {"all_reduce 1", "all_reduce 1", "fill* 1", "all_reduce 1", "copy 0 <- 1:3", "fill* 1",
             "copy 0 <- 1:5"}},
           {"the communication waited for nothing", {"all_reduce 1 a", "copy 0 a b"}, {"copy 0"}},
           {"nothing is waited for twice",
            {"fill 0 a", "all_reduce 1 a", "copy 2 a b", "all_reduce 1 a", "copy 2 a c"},
            {"fill* 0", "copy 2 <- 0:1", "copy 2"}},
           {"communication alone", {"all_reduce 1 a"}, {}}}) {
    SCOPED_TRACE(one.what);
    const RankProgram program = playing(one.step);
    if (!one.whole.empty()) {
      ASSERT_EQ(described(program.step()), one.whole);
    }
    const Program solo = without_communication(program.step());
    EXPECT_EQ(described(solo), one.solo);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < one.step.size(); ++i) {
      if (!one.step[i].starts_with("all_reduce")) kept.push_back(i);
    }
    EXPECT_EQ(solo_ops(program.step()), kept);
    for (const Op& op : solo.ops) {
      EXPECT_EQ(op.place.phase, Phase::forward);
      EXPECT_EQ(op.place.layer, 3);
    }
  }
}

}  // namespace
}  // namespace isoscale::program

namespace isoscale::workloads {
namespace {

/// Those of the meshes that a workload may have.
std::vector<mesh::Shape> meshes_of(const Workload& workload) {
  std::vector<mesh::Shape> meshes{""_mesh,          "dp=4"_mesh,          "tp=4"_mesh,
                                  "pp=4"_mesh,      "tp=2,dp=2"_mesh,     "dp=2,pp=2"_mesh,
                                  "tp=2,pp=4"_mesh, "tp=2,dp=2,pp=2"_mesh};
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

/// Each op that is left comes after the same ones as before, and after no others.
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
      expect_sound(workload.scale(small(4, 4), mesh, Scaling::weak), workload);
      ++points;
    }
  }
  EXPECT_GE(points, 3 * 2 + 8);  // dp, tp, pp on their axis and hybrid on all
  for (const Options& options : {"tp_output=gather"_options, "schedule=gpipe"_options}) {
    expect_sound(scaled(small(4, 4, options), {.tp = 2, .dp = 2, .pp = 2}, Scaling::weak),
                 find_workload("hybrid"));
  }
}

}  // namespace
}  // namespace isoscale::workloads
