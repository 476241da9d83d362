// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/reference_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "executor/host/compute_ops.hpp"
#include "executor/host/host_executor.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/operands.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::runner::measure {
namespace {

/// Reads a slice as f64. Throws base::Error if its elements are not floating-point numbers.
std::vector<double> read_slice(executor::Session& session, const program::RankProgram& program,
                               const program::Slice& slice) {
  const program::DType type = program.buffers[slice.buffer].dtype;
  std::vector<std::byte> raw(slice.count * program::element_size(type));
  session.read(slice, raw);
  std::vector<double> values(slice.count);
  executor::host::widen_row(type, raw.data(), values.data(), values.size());
  return values;
}

/// Calls visit(observable, name, elements) for each observable (tensor to compare), with the
/// elements that this rank holds. If the setup section writes the observable, visit() is called a
/// second time, with the changes of these elements since setup.
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

/// Plays `twin_steps` steps of the reference program on this rank alone, with the host executor in
/// f64, and returns the resulting tensors.
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

void broadcast(Tensors& tensors, const comm::Communicator& point) {
  std::vector<std::string> names;
  for (const auto& [name, values] : tensors) names.push_back(name);
  names.resize(point.broadcast(names.size()));
  for (std::string& name : names) {
    name = point.broadcast(std::move(name));
    std::vector<double>& values = tensors[name];
    values.resize(point.broadcast(values.size()));
    point.broadcast(std::as_writable_bytes(std::span{values}));
  }
}

/// Collective: returns the name of a tensor that has an element which no rank holds; "" if none.
std::string missing_tensor(const program::RankProgram& program, const mesh::Coordinates& at,
                           const Tensors& reference, const comm::Communicator& point) {
  std::map<std::string_view, std::size_t> first;  // index in `held` of the tensor's first element
  std::size_t total = 0;
  for (const auto& [name, values] : reference) {
    first[name] = total;
    total += values.size();
  }
  std::vector<double> held(total, 0.0);
  for (const program::Observable& observable : program.observables) {
    for (const std::string& name :
         {observable.name, observable.name + std::string{change_suffix}}) {
      const auto found = first.find(name);
      if (found == first.end()) continue;
      for_each_element(observable.shard, at, [&](std::uint64_t /*from*/, std::uint64_t to) {
        held[found->second + to] = 1;
      });
    }
  }
  point.all_max(held);
  for (const auto& [name, values] : reference) {
    const auto of_tensor = std::span{held}.subspan(first[name], values.size());
    if (std::ranges::count(of_tensor, 1.0) != std::ssize(values)) return name;
  }
  return "";
}

/// Collective: returns why `work` failed, with the rank on which it did; "" if all ranks are done.
template <class Work>
std::string agreed(const comm::Communicator& point, const Work& work) {
  return comm::all_ok(point, comm::problem_in(work)).why;
}

/// Collective: gives all ranks the tensors of the reference, which rank 0 computes. Returns why
/// that failed; "" if it did not.
std::string share_reference(const workloads::Workload& workload, const workloads::Request& twin,
                            const comm::Communicator& point, Tensors& reference) {
  const comm::Communicator self = point.split(point.rank(), 0);
  std::string why = agreed(point, [&] {
    if (point.rank() == 0) reference = reference_tensors(workload, twin, self);
  });
  if (why.empty()) broadcast(reference, point);
  return why;
}

/// Collective: plays the programs of a twin and compares what they compute with the reference.
/// If the results are equal, the detail of the verdict is their difference.
Verdict compare_with(const Tensors& reference, const program::ProgramSet& set,
                     const workloads::Request& twin, executor::Executor& executor,
                     const comm::Communicator& point) {
  executor::SessionPtr session;
  bool is_supported = true;
  std::string problem = comm::problem_in([&] {
    try {
      session = executor.prepare(set, point);
    } catch (const executor::Unsupported&) {
      is_supported = false;
      throw;
    }
  });
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) {
    const bool fails = point.all_max(is_supported && !problem.empty() ? 1.0 : 0.0) > 0;
    if (fails) return {false, vote.why};
    return {.ok = false, .detail = vote.why, .unsupported = is_supported ? vote.why : problem};
  }
  const program::RankProgram& program = set.of(point.rank());
  const Initial initial = play_twin(*session, program);

  Difference mine;
  const mesh::Coordinates at = mesh::coordinates(set.mesh, point.rank());
  const double allowed = tolerance(twin);
  problem = comm::problem_in([&] { mine = compare(*session, program, at, initial, reference); });
  if (problem.empty() && mine.relative > allowed) {
    problem = fmt::format(
        "{} differs from one rank's by {:.2e} of its largest element in {}, {:.0e} allowed",
        mine.name, mine.relative, program::name(twin.precision), allowed);
  }
  const comm::Vote vote = comm::all_ok(point, problem);
  const double worst = point.all_max(mine.relative);
  if (!vote.ok) return {false, vote.why, worst};
  const std::string missing = missing_tensor(program, at, reference, point);
  if (!missing.empty()) {
    return {false, fmt::format("no rank holds some of {}: it was not compared", missing)};
  }
  return {true,
          fmt::format("within {:.1e} ({:.0e} allowed)", worst, allowed),
          worst,
          {},
          session->facts().gemm_choices};
}

}  // namespace

Initial play_twin(executor::Session& session, const program::RankProgram& program) {
  session.play({.section = program::Section::setup});
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
    session.play({.section = program::Section::step});
  }
  return initial;
}

Difference compare(executor::Session& session, const program::RankProgram& program,
                   const mesh::Coordinates& at, const Initial& initial, const Tensors& reference) {
  Difference worst;
  double largest = 0;  // magnitude in the tensor compared before; the weight's, if this is a change
  const auto compare_tensor = [&](const program::Observable& observable, const std::string& name,
                                  const std::vector<double>& local) {
    const auto found = reference.find(name);
    if (found == reference.end()) {
      throw base::Error(fmt::format("the reference has no tensor {}", name));
    }
    const std::vector<double>& whole = found->second;
    double magnitude = 0;
    for (const double value : whole) magnitude = std::max(magnitude, std::abs(value));
    // Each step rounds a weight in f32 by up to 2^-24 of it, which is no error of its small change.
    const bool is_f32 = program.buffers[observable.slice.buffer].dtype == program::DType::f32;
    const bool rounds = is_f32 && name.ends_with(change_suffix);
    const double rounding = rounds ? twin_steps * 0x1p-24 * largest : 0;
    largest = magnitude;
    for_each_element(observable.shard, at, [&](std::uint64_t from, std::uint64_t to) {
      const double expected = to < whole.size() ? whole[to] : std::nan("");
      const double difference =
          std::max(std::abs(local[from] - expected) - rounding, 0.0) / magnitude;
      ++worst.compared;
      if (!(difference <= worst.relative)) {  // also true for NaN
        worst.relative =
            std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
        worst.name = name;
      }
    });
  };
  for_each_tensor(session, program, initial, compare_tensor);
  return worst;
}

double tolerance(program::Precision precision) {
  // The tolerances are in the order of program::Precision: f64, f32, tf32, f16, bf16, fp8.
  constexpr std::array<double, 6> tolerances{1e-11, 1e-4, 1e-2, 2e-2, 1e-1, 3e-1};
  static_assert(static_cast<std::size_t>(program::Precision::fp8) + 1 == tolerances.size());
  return tolerances.at(static_cast<std::size_t>(precision));
}

double tolerance(const workloads::Request& twin) {
  double computed = tolerance(twin.precision);
  if (twin.precision == program::Precision::f16 || twin.precision == program::Precision::bf16) {
    const double roundings = twin.model.layers * std::max(1.0, twin.mesh.tp / 4.0);
    constexpr double most = 0.5;  // a missing update differs by 1
    computed = std::min(most, computed * std::max(1.0, 0.3 * std::sqrt(roundings)));
  }
  using workloads::stack::GradientType, workloads::stack::TrainingOptions;
  switch (workloads::stack::option_of(twin, "grad_dtype", &TrainingOptions::grad_dtype)) {
    case GradientType::same:
      break;
    case GradientType::bf16:
      return std::max(computed, tolerance(program::Precision::bf16));
    case GradientType::f16:
      return std::max(computed, tolerance(program::Precision::f16));
  }
  return computed;
}

Verdict verify_programs(const program::ProgramSet& set, const workloads::Workload& workload,
                        const workloads::Request& twin, executor::Executor& executor,
                        const comm::Communicator& point) {
  Tensors reference;
  const std::string why = share_reference(workload, twin, point, reference);
  return why.empty() ? compare_with(reference, set, twin, executor, point) : Verdict{false, why};
}

Verdict verify_twin(const workloads::Workload& workload, const workloads::Request& request,
                    executor::Executor& executor, const comm::Communicator& point) {
  workloads::Request twin;
  std::string why = agreed(point, [&] { twin = workload.twin(request); });
  if (!why.empty()) return {false, why};
  Tensors reference;
  const auto verify = [&]() -> Verdict {
    program::ProgramSet set;
    why = agreed(point, [&] {
      set = workload.build(twin);
      if (point.rank() == 0) program::check(set);
    });
    if (why.empty() && reference.empty()) why = share_reference(workload, twin, point, reference);
    return why.empty() ? compare_with(reference, set, twin, executor, point) : Verdict{false, why};
  };
  Verdict verdict = verify();
  if (!verdict.ok) return verdict;
  verdict.detail = fmt::format(
      "twin on mesh {}, {} steps: {} equal one rank's in f64 {}", mesh::to_string(twin.mesh),
      twin_steps, workload.is_bench() ? "outputs and cache" : "outputs, gradients and weights",
      verdict.detail);
  if (tolerance(twin) <= tolerance(program::Precision::f32)) return verdict;

  twin.precision = program::Precision::f32;
  twin.options.erase("grad_dtype");
  Verdict wide = verify();
  if (!wide.unsupported.empty()) {
    verdict.detail += fmt::format("; not played in f32: {}", wide.unsupported);
    return verdict;
  }
  if (!wide.ok) return wide;
  verdict.detail += "; in f32 " + wide.detail;
  std::ranges::move(wide.gemm_choices, std::back_inserter(verdict.gemm_choices));
  return verdict;
}

}  // namespace isoscale::runner::measure
