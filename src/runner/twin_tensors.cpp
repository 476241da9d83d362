// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "executor/host/host.hpp"
#include "program/operands.hpp"
#include "runner/elements.hpp"
#include "runner/verify.hpp"

namespace isoscale::runner {
namespace {

std::vector<double> read_slice(executor::Session& session, const program::RankProgram& program,
                               const program::Slice& slice) {
  const program::DType type = program.buffers[slice.buffer].dtype;
  std::vector<std::byte> raw(slice.count * program::element_size(type));
  session.read(slice, raw);
  return to_doubles(raw, type);
}

/// Calls visit(name, local elements) for each observable, and for what changed in it since setup.
template <class Visit>
void for_each_tensor(executor::Session& session, const program::RankProgram& program,
                     const Initial& initial, const Visit& visit) {
  for (std::size_t i = 0; i < program.observables.size(); ++i) {
    const program::Observable& observable = program.observables[i];
    std::vector<double> local = read_slice(session, program, observable.slice);
    visit(observable, observable.name, local);
    if (initial[i].empty()) continue;
    for (std::size_t e = 0; e < local.size(); ++e) local[e] -= initial[i][e];
    visit(observable, observable.name + std::string{change_suffix}, local);
  }
}

}  // namespace

Initial play_twin(executor::Session& session, const program::RankProgram& program) {
  session.play(program::Section::setup, executor::Trace::off);
  std::set<program::BufferId> filled;
  for (const program::Op& op : program.setup.ops) {
    program::for_each_slice(op.payload, [&](const program::Slice& slice, program::Mode) {
      filled.insert(slice.buffer);
    });
  }
  Initial initial;
  for (const program::Observable& observable : program.observables) {
    initial.emplace_back();
    if (!filled.contains(observable.slice.buffer)) continue;
    initial.back() = read_slice(session, program, observable.slice);
  }
  for (int step = 0; step < twin_steps; ++step) {
    session.play(program::Section::step, executor::Trace::off);
  }
  return initial;
}

Tensors reference_tensors(const workloads::Workload& workload, const workloads::Request& twin,
                          const comm::Communicator& self) {
  const program::ProgramSet set = workload.build(workload.reference(twin));
  const program::RankProgram& program = set.programs.front();
  const auto host = executor::make_host_executor({.streams = executor::HostStreams::folded});
  const auto session = host->prepare(set, self);
  const Initial initial = play_twin(*session, program);
  Tensors tensors;
  for_each_tensor(*session, program, initial,
                  [&](const program::Observable& observable, const std::string& name,
                      const std::vector<double>& local) {
                    std::vector<double>& whole = tensors[name];
                    for_each_element(observable.shard, {},
                                     [&](std::uint64_t from, std::uint64_t to) {
                                       if (to >= whole.size()) whole.resize(to + 1, std::nan(""));
                                       whole[to] = local[from];
                                     });
                  });
  return tensors;
}

Difference compare(executor::Session& session, const program::RankProgram& program,
                   const mesh::Coordinates& at, const Initial& initial, const Tensors& reference) {
  Difference worst;
  const auto compare_tensor = [&](const program::Observable& observable, const std::string& name,
                                  const std::vector<double>& local) {
    const auto found = reference.find(name);
    if (found == reference.end()) {
      throw base::Error(fmt::format("the reference has no tensor {}", name));
    }
    const std::vector<double>& whole = found->second;
    double magnitude = 0;
    for (const double value : whole) magnitude = std::max(magnitude, std::abs(value));
    for_each_element(observable.shard, at, [&](std::uint64_t from, std::uint64_t to) {
      const double expected = to < whole.size() ? whole[to] : std::nan("");
      const double difference = std::abs(local[from] - expected) / magnitude;
      ++worst.compared;
      if (!(difference <= worst.relative)) {  // also when it is not a number
        worst.relative =
            std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
        worst.name = name;
      }
    });
  };
  for_each_tensor(session, program, initial, compare_tensor);
  return worst;
}

}  // namespace isoscale::runner
