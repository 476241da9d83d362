// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/host/host_executor.hpp"
#include "runner/run_points.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// Points to run in tests, and an executor that tells what it has been asked to do.

namespace isoscale::runner {

/// Steps take well under a millisecond.
inline workloads::Request small_request() {
  return {.model = workloads::test_model(
              "hidden=32 ffn=64 heads=8 head_size=4 layers=8 sequence=8 vocabulary=32"),
          .options = {{"microbatch", "1"}, {"microbatches", "8"}}};
}

/// The request at a mesh, and its programs.
inline std::pair<workloads::Request, program::ProgramSet> small_request_on(
    std::string_view workload, const mesh::Shape& mesh) {
  const workloads::Workload& known = workloads::find_workload(workload);
  const workloads::Request request = known.scale(small_request(), mesh, workloads::Scaling::strong);
  return {request, known.build(request)};
}

inline program::BufferId weights_of(const program::RankProgram& program) {
  program::BufferId id = 0;
  while (program.buffers[id].role != program::Role::weight) ++id;
  return id;
}

/// An effort that is precise enough as soon as `half_width` is. Other work on the machine does not
/// lengthen its warm-up.
inline plan::Effort effort_of(double max_time, std::optional<double> half_width, int trace_steps) {
  return {.max_time = units::Seconds{max_time},
          .trace_steps = trace_steps,
          .half_width = [half_width](std::span<const double>, double) { return half_width; },
          .last_change = [](std::span<const double>, double) { return 0; }};
}

/// A run of one workload on some ranks.
inline settings::RunConfig config_of(std::string_view workload, workloads::Request base,
                                     int ranks) {
  settings::RunConfig config;
  settings::Experiment& experiment = config.experiments.emplace_back();
  experiment.workload = workload;
  experiment.base = std::move(base);
  config.ranks = {ranks};
  return config;
}

/// The world of this run, ready to run points.
struct PointRuns {
  explicit PointRuns(executor::Executor& plays) : executor(plays) {}

  /// Collective: complete on rank 0.
  results::PointData run(const plan::PlannedPoint& point, const settings::RunConfig& config,
                         const plan::Effort& effort) {
    return run_point(point, {.config = config,
                             .site = site,
                             .facts = facts,
                             .world = world,
                             .executor = executor,
                             .effort = effort,
                             .progress = progress});
  }
  /// The first point of a run.
  results::PointData run(settings::RunConfig& config, const plan::Effort& effort) {
    const plan::Plan plan = plan::make_plan(config, site);
    return run(plan.points.front(), config, effort);
  }

  executor::Executor& executor;
  comm::Communicator world = comm::Communicator::world();
  std::vector<machine::MachineFacts> facts = plan::gather_facts(world);
  plan::Site site = plan::make_site(world, executor.describe(), facts);
  watch::Progress progress{watch::Progress::Style::silent, 1};
};

/// The counts tell what an ObservedExecutor has been asked to do on this rank.
struct Observed {
  int prepared = 0;
  int steps = 0;
};

/// A session that calls a function before each of its plays.
class HookedSession final : public executor::Session {
 public:
  using Hook = std::function<void(const executor::Play&)>;

  HookedSession(executor::SessionPtr inner, Hook before_play)
      : inner_(std::move(inner)), before_play_(std::move(before_play)) {}

  executor::PlayTime play(const executor::Play& what) override {
    before_play_(what);
    return inner_->play(what);
  }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return inner_->spans(); }
  void read(const program::Slice& slice, std::span<std::byte> into) override {
    inner_->read(slice, into);
  }
  void write(const program::Slice& slice, std::span<const std::byte> from) override {
    inner_->write(slice, from);
  }
  [[nodiscard]] const executor::SessionFacts& facts() const override { return inner_->facts(); }
  void abandon() noexcept override { inner_->abandon(); }

 private:
  executor::SessionPtr inner_;
  Hook before_play_;
};

/// Does what the host executor does, unless a test's own class does something else.
class LikeHost : public executor::Executor {
 public:
  [[nodiscard]] const executor::Description& describe() const override {
    return inner_->describe();
  }

 protected:
  std::unique_ptr<executor::Executor> inner_ =
      executor::make_host_executor({.streams = executor::HostStreams::folded});
};

/// The host executor, counting, and out of memory when told to be.
class ObservedExecutor final : public LikeHost {
 public:
  [[nodiscard]] executor::SessionPtr prepare(const program::ProgramSet& set,
                                             const comm::Communicator& point,
                                             const executor::SessionOptions& options) override {
    // Collective first, as the interface asks: a rank that throws leaves nobody waiting.
    auto session = inner_->prepare(set, point, options);
    ++observed.prepared;
    if (fail_at == observed.prepared) throw base::Error("no memory is left, says the test");
    return std::make_unique<HookedSession>(std::move(session), [this](const auto& what) {
      if (what.section == program::Section::step) ++observed.steps;
    });
  }

  Observed observed;
  std::optional<int> fail_at;  ///< the how-manieth prepare fails on this rank
};

}  // namespace isoscale::runner
