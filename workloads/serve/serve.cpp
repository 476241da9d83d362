// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/serve/serve.hpp"

#include <vector>

#include "program/builder.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/serve/setting.hpp"

namespace isoscale::workloads::serve {
namespace {

program::RankProgram stage_program(const Request& request, int stage) {
  const Setting setting = setting_of(request);
  program::Builder builder{request.mesh};
  infer::Replica replica{builder,
                         request,
                         mesh::Coordinates{.pp = stage},
                         {.samples = setting.max_batch,
                          .prompt = setting.prompt,
                          .positions = setting.prompt + setting.output,
                          .decoded = 1}};
  const std::vector<std::uint64_t> sizes = sizes_of(setting.max_batch);
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    builder.begin(section_of(size, 0, setting.output));
    replica.prefill(sizes[size], setting.prompt);
    for (std::uint64_t token = 1; token < setting.output; ++token) {
      builder.begin(section_of(size, token, setting.output));
      replica.decode(sizes[size], setting.prompt + token - 1, 1);
    }
  }
  return builder.finish();
}

/// Ranks of one stage are alike.
program::ProgramSet programs_of(const Request& request) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  for (int stage = 0; stage < request.mesh.pp; ++stage) {
    set.programs.push_back(stage_program(request, stage));
  }
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    set.program_of_rank.push_back(
        static_cast<std::uint32_t>(mesh::coordinates(request.mesh, rank).pp));
  }
  return set;
}

}  // namespace

program::Section section_of(std::size_t size, std::uint64_t token, std::uint64_t output) {
  return program::step_section(size * static_cast<std::size_t>(output) +
                               static_cast<std::size_t>(token));
}

program::ProgramSet replica_programs(const Request& request) {
  Request one = request;
  one.mesh.dp = 1;
  return programs_of(one);
}

BenchHooks hooks() {
  return {.batches = [](const Request&) { return 1; },
          .build =
              [](const Request& request, int /*batch*/) {
                Bench bench;
                bench.set = programs_of(request);
                return bench;
              },
          .uses_model = [](const Request&) { return true; }};
}

}  // namespace isoscale::workloads::serve
