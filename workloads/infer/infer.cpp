// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/infer/infer.hpp"

#include <utility>

#include "program/builder.hpp"
#include "program/outline.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/infer/setting.hpp"

namespace isoscale::workloads::infer {
namespace {

constexpr std::size_t prefill_step = 0, decode_step = 1;
/// In one play, so that what begins and ends a play weighs little.
constexpr std::uint64_t passes = 16;

Room room_of(const Setting& setting, std::uint64_t batch) {
  return {.samples = batch,
          .prompt = setting.prompt,
          .positions = setting.positions(),
          .decoded = window_of(setting).tokens};
}

/// One program for each stage: the others of a mesh differ in where their shards begin.
template <class Write>
program::ProgramSet by_stage(const Request& request, const Write& write) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  for (int stage = 0; stage < request.mesh.pp; ++stage) {
    set.programs.push_back(write(mesh::Coordinates{.pp = stage}));
  }
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    set.program_of_rank.push_back(
        static_cast<std::uint32_t>(mesh::coordinates(request.mesh, rank).pp));
  }
  return set;
}

double flop_of(const program::ProgramSet& set, program::Section section) {
  std::vector<double> of_program;
  for (const program::RankProgram& program : set.programs) {
    double sum = 0;
    for (const program::OutlineOp& op : program::outline(program, section, set.mesh).ops) {
      sum += op.flop;
    }
    of_program.push_back(sum);
  }
  double sum = 0;
  for (const std::uint32_t program : set.program_of_rank) sum += of_program[program];
  return sum;
}

RowSpec row_of(const Request& request, const Setting& setting, std::uint64_t batch) {
  RowSpec row;
  row.text = {{"op", "infer"}, {"dtype", std::string{name(request.precision)}}};
  row.number = {{"batch", static_cast<double>(batch)},
                {"prompt", static_cast<double>(setting.prompt)},
                {"output", static_cast<double>(setting.output)},
                {"replicas", request.mesh.dp},
                {"groups", static_cast<double>(
                               groups_of(batch, static_cast<std::uint64_t>(request.mesh.pp)))},
                {"cache_bytes", static_cast<double>(cache_of(request, batch).value())}};
  return row;
}

Bench bench_of(const Request& request, int index) {
  const Setting setting = setting_of(request);
  const std::uint64_t batch = setting.batches.at(static_cast<std::size_t>(index));
  const Window window = window_of(setting);
  Bench bench;
  bench.set = by_stage(request, [&](const mesh::Coordinates& at) {
    program::Builder builder{request.mesh};
    Replica replica{builder, request, at, room_of(setting, batch)};
    builder.begin(program::step_section(prefill_step));
    replica.prefill(batch, setting.prompt);
    builder.begin(program::step_section(decode_step));
    replica.decode(batch, window.position, window.tokens);
    return builder.finish();
  });
  RowSpec prefill = row_of(request, setting, batch), decode = prefill;
  prefill.text["part"] = "prefill";
  prefill.number["flop"] = flop_of(bench.set, program::step_section(prefill_step));
  decode.text["part"] = "decode";
  decode.number["flop"] = flop_of(bench.set, program::step_section(decode_step));
  decode.number["position"] = static_cast<double>(window.position);
  decode.number["tokens"] = static_cast<double>(window.tokens);
  bench.rows = {std::move(prefill), std::move(decode)};
  // Prompts that follow each other at once would overlap in the stages: each of them stands alone.
  bench.cases = {{.section = program::step_section(prefill_step),
                  .most_times = request.mesh.pp > 1 ? 1 : passes,
                  .row_begin = 0,
                  .row_end = 1,
                  .calls_are_spans = CallsAreSpans::no,
                  .repeat = request.mesh.pp > 1 ? Repeat::never : Repeat::allowed,
                  .launch_cost = LaunchCost::included},
                 {.section = program::step_section(decode_step),
                  .calls = window.tokens,
                  .most_times = passes,
                  .row_begin = 1,
                  .row_end = 2,
                  .calls_are_spans = CallsAreSpans::no,
                  .launch_cost = LaunchCost::included}};
  return bench;
}

}  // namespace

program::ProgramSet build(const Request& request) {
  const Setting setting = setting_of(request);
  const std::uint64_t batch = setting.batches.back();
  return by_stage(request, [&](const mesh::Coordinates& at) {
    const Window window = window_of(setting);
    program::Builder builder{request.mesh};
    Replica replica{builder, request, at, room_of(setting, batch)};
    builder.begin(program::Section::step);
    replica.prefill(batch, setting.prompt);
    replica.decode(batch, setting.prompt, window.tokens);
    if (request.keep == Keep::observables) replica.observe_cache();
    return builder.finish();
  });
}

BenchHooks hooks() {
  return {.batches =
              [](const Request& request) {
                return static_cast<int>(setting_of(request).batches.size());
              },
          .build = bench_of,
          .uses_model = [](const Request&) { return true; }};
}

}  // namespace isoscale::workloads::infer
