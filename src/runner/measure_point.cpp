// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure_point.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "comm/errors.hpp"
#include "program/added_sections.hpp"
#include "program/check.hpp"
#include "runner/measure/gather_point.hpp"
#include "runner/measure/measure_steps.hpp"
#include "runner/measure/step_check.hpp"
#include "runner/measure/twin_check.hpp"
#include "runner/microbench/microbench.hpp"
#include "runner/microbench/rank_speeds.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/program_needs.hpp"
#include "runner/plan/rank_faults.hpp"
#include "runner/plan/site.hpp"
#include "runner/run_file.hpp"
#include "runner/serving/serving.hpp"
#include "runner/watch/progress.hpp"
#include "units/text.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;

constexpr std::size_t most_soak_findings = 1000;  // the most that a run file keeps

void fail(PointData& data, std::string reason) {
  data.status = PointStatus::failed;
  data.reason = std::move(reason);
}

std::string standing_text(const Standing& at) {
  const std::string text =
      fmt::format("{} of {} steps count, {}", at.counted, at.steps, units::format(at.elapsed));
  return at.half_width ? fmt::format("{}, ±{}", text, units::format_percent(*at.half_width)) : text;
}

/// Changes the times in traces to those that this rank's clock would show if it had the injected
/// error. This is done here and not when the clock is read, so that reading costs nothing extra.
void misread(const comm::ClockSync& clocks, Record& record) {
  for (timeline::StepTrace& trace : record.traces) {
    trace.begin = clocks.shown(trace.begin);
    trace.end = clocks.shown(trace.end);
    for (timeline::Span& span : trace.spans) {
      span.start = clocks.shown(span.start);
      span.end = clocks.shown(span.end);
    }
  }
}

/// Measures a point on one rank, which plays in the point or in a copy of it.
class PointRun {
 public:
  PointRun(const PlannedPoint& point, const PointContext& context, RankRole role)
      : point_(point),
        request_(point.request),
        context_(context),
        role_(role),
        sub_world_(context.world.split(role.replica, role.position)),
        active_(context.world.split(role.replica < 0 ? -1 : 0, context.world.rank())) {}

  [[nodiscard]] bool plays() const { return role_.replica >= 0; }

  /// Collective over the ranks of the point and its copies: fills `data` on rank 0 of the point,
  /// and its status on all of these ranks.
  void run(PointData& data) {
    const bool has_twin = point_.workload->twin != nullptr;
    if (!partitioned(data)) return;
    if (has_twin && !verified(data)) return;
    if (point_.workload->is_bench()) return run_as_bench(data);
    if (context_.executor.describe().shared_device) {
      data.status = PointStatus::skipped;
      data.reason = "ranks share a GPU: verified, not measured";
      return;
    }
    if (!prepared(data)) return;
    context_.progress.doing("measuring");
    session_->play(program::Section::setup, executor::Trace::off);
    check_->step(*session_, sub_world_);
    const comm::ClockSync clocks{
        sub_world_, in_point() ? clock_fault_of(context_.config.injections, context_.world.rank())
                               : std::nullopt};
    PointSampler sampler{duty()};
    Record record = measure(*session_, set_.of(sub_world_.rank()).step(), active_,
                            in_point() ? Share::in_point : Share::replica, context_.effort,
                            [this](const Standing& at) { look_at(at); });
    const std::vector<machine::SampledSeries> sampled = sampler.stop();
    const comm::ClockFit clock = clocks.fit();
    misread(clocks, record);
    check_->step(*session_, sub_world_);
    const Verdict steps = check_->verdict();
    data.verified = steps.ok;
    data.verification += "; " + steps.detail;
    static_cast<void>(agreed(data, steps));
    if (in_point()) {
      collect(sub_world_, record, clock, session_->facts(), traced(), data);
      collect_device_series(sub_world_, record, sampled, data);
    }
    if (soak_) soak(data);
    // On shared cores, the step without communication is not played. All ranks would compute at the
    // same time, so its ops would take longer than in the real step, where waiting ranks leave the
    // cores to others.
    const bool shares_cores = std::ranges::find(data.labels, "oversubscribed") != data.labels.end();
    if (solo_ && !shares_cores) play_solo(record, data);
  }

 private:
  [[nodiscard]] bool in_point() const { return role_.replica == 0; }

  /// Returns the ranks of the point whose spans are kept.
  [[nodiscard]] std::vector<int> traced() const {
    return traced_ranks(set_.mesh, context_.config.trace_ranks);
  }

  /// Replays the step, and records which replays differed.
  void soak(PointData& data) {
    const auto tell = [&](const SoakResult& so_far) {
      context_.progress.doing(
          fmt::format("soaking: {} replays, {} differ", so_far.replays, so_far.differing.size()));
    };
    const SoakResult result =
        soak_->run(*session_, sub_world_, {.time = *context_.config.soak}, tell);
    data.soak.replays = result.replays;
    data.soak.seconds = result.time.value();
    for (const Differing& differing : result.differing) {
      if (data.soak.differing.size() == most_soak_findings) break;
      data.soak.differing.push_back(
          fmt::format("replay {}: {}", differing.replay, differing.sentence));
    }
    const Verdict verdict{.ok = result.differing.empty(), .detail = "soak: " + soak_text(result)};
    data.verified = data.verified.value_or(true) && verdict.ok;
    data.verification += "; " + verdict.detail;
    if (data.status == PointStatus::ok) static_cast<void>(agreed(data, verdict));
  }

  /// Called between blocks. Shows the progress, and checks the weights if steps were traced since
  /// the last call.
  void look_at(const Standing& at) {
    context_.progress.doing(standing_text(at));
    if (at.traced == checked_traces_) return;
    checked_traces_ = at.traced;
    check_->weights(*session_, sub_world_);
  }

  /// Plays the step without communication, as the last part of the point: it computes wrong
  /// results, which nothing may use.
  void play_solo(const Record& record, PointData& data) {
    context_.progress.doing("playing without communication");
    const double step = active_.all_max(record.step_times.back());
    const std::vector<units::Nanoseconds> times =
        measure_solo(*session_, set_.of(sub_world_.rank()), *solo_, active_,
                     solo_plays(units::Seconds{step}, context_.effort.max_time));
    if (in_point()) collect_solo(sub_world_, times, traced(), data);
  }

  /// Returns the faults to inject on this rank: none on copies of the point, whose times are not
  /// kept. The twin is checked without faults, so that a wrong result there is a real error.
  [[nodiscard]] program::Faults faults() const {
    return faults_of(context_.config.injections, point_.world_ranks, context_.world.rank(),
                     point_.request.seed);
  }

  /// Returns what this rank samples: nothing if it plays a copy of the point.
  [[nodiscard]] SamplingDuty duty() const {
    if (!in_point()) return {};
    const auto& device = context_.executor.describe().facts_text;
    const auto uuid = device.find("gpu_uuid");
    return sampling_duty(sub_world_.rank(), point_.world_ranks, context_.site.node_of_rank,
                         context_.facts, uuid == device.end() ? "" : uuid->second);
  }

  void run_as_bench(PointData& data) {
    const BenchPlace place{.sub_world = sub_world_,
                           .active = active_,
                           .faults = faults(),
                           .share = in_point() ? Share::in_point : Share::replica};
    const bool has_requests = point_.workload->kind == workloads::Kind::requests;
    (has_requests ? serve::run_serve : run_bench)(point_, context_, place, data);
  }

  /// Collective: fails the point if any rank of the point or its copies has a problem. Returns true
  /// if there is none, the same on all ranks.
  [[nodiscard]] bool agreed(PointData& data, const std::string& problem) {
    const comm::Vote vote = comm::all_ok(active_, problem);
    if (!vote.ok) fail(data, vote.why);
    return vote.ok;
  }
  /// Like agreed() above, for a verdict on which the ranks of each copy already agree. The reason
  /// for the failure is the rank's own verdict if that is bad, else the verdict of a copy.
  [[nodiscard]] bool agreed(PointData& data, const Verdict& verdict) {
    const comm::Vote vote = comm::all_ok(active_, verdict.ok ? "" : verdict.detail);
    if (!vote.ok) fail(data, verdict.ok ? "a copy of the point: " + vote.why : verdict.detail);
    return vote.ok;
  }

  /// Collective: measures the speed of each rank if the request is partitioned by speed. Returns
  /// false if the point has failed.
  bool partitioned(PointData& data) {
    if (!partitions_by_speed(request_)) return true;
    context_.progress.doing("measuring the speed of each rank");
    std::string problem;
    program::ProgramSet set;
    try {
      set = largest_multiplication(point_.workload->build(request_));
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    if (!agreed(data, problem)) return false;
    try {
      request_.speed_of_rank = measure_speeds(set, context_.executor, sub_world_, faults());
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    return agreed(data, problem);
  }

  /// Collective: skips a point that the executor cannot play, which is no failure. Returns the same
  /// on all ranks of the point and its copies.
  [[nodiscard]] bool supported(PointData& data, const std::string& unsupported) {
    const comm::Vote vote = comm::all_ok(active_, unsupported);
    if (vote.ok) return true;
    data.status = PointStatus::skipped;
    data.reason = unsupported.empty() ? vote.why : unsupported;
    return false;
  }

  bool verified(PointData& data) {
    context_.progress.doing("verifying");
    const Verdict twin = verify_twin(*point_.workload, request_, context_.executor, sub_world_);
    if (!supported(data, twin.unsupported)) return false;
    data.verified = twin.ok;
    data.verification = twin.detail;
    if (partitions_by_speed(request_)) {
      data.verification +=
          fmt::format("; replicas were dealt {} microbatches by measured speed",
                      fmt::join(workloads::stack::distribution_of(request_).microbatches, ", "));
    }
    // The twin's algorithms are kept, too: a later run with --gemm-algorithms then has to choose
    // none.
    if (in_point()) collect_gemm_choices(sub_world_, twin.gemm_choices, data);
    return agreed(data, twin);
  }

  bool prepared(PointData& data) {
    context_.progress.doing("preparing");
    std::string problem;
    try {
      set_ = point_.workload->build(request_);
      if (context_.world.rank() == 0) describe_programs(data);
      if (context_.effort.trace_steps > 0) solo_ = program::add_solo_step(set_);
      if (sub_world_.rank() == 0) program::check(set_);
      add_checks();
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    if (!agreed(data, problem)) return false;
    std::string unsupported;
    try {
      const auto registration = request_.options.find("registration");
      const bool registers =
          registration != request_.options.end() && registration->second == "local";
      session_ = context_.executor.prepare(
          set_, sub_world_,
          {.registration = registers ? program::Registration::local : program::Registration::none,
           .faults = faults()});
    } catch (const executor::Unsupported& error) {
      unsupported = error.what();
    } catch (const std::exception& error) {
      problem = comm::problem_of(error);
    }
    return agreed(data, problem) && supported(data, unsupported);
  }

  /// Adds the sections that check the results of steps to the programs.
  void add_checks() {
    std::optional<int> flipping;
    if (context_.config.soak && in_point()) {
      flipping = flipping_rank(context_.config.injections, point_.world_ranks);
    }
    check_.emplace(set_, flipping);
    if (context_.config.soak) soak_.emplace(set_, *check_, point_.request.seed);
  }

  void describe_programs(PointData& data) const {
    const std::vector<program::Facts> facts = facts_of_programs(set_);
    for (const std::uint32_t program : set_.program_of_rank) {
      data.flop_of_rank.push_back(facts[program].flop.value());
      data.peak_live_microbatches.push_back(facts[program].peak_live_microbatches);
    }
    data.outline = program::outline(set_, program::Section::step);
  }

  const PlannedPoint& point_;
  workloads::Request request_;  ///< the point's request, with the measured speeds of ranks
  const PointContext& context_;
  RankRole role_;
  comm::Communicator sub_world_;  ///< ranks of the point, or of this rank's copy of it
  comm::Communicator active_;     ///< the ranks of the point and of its copies
  program::ProgramSet set_;
  std::optional<program::Section> solo_;  ///< the step without communication
  std::optional<StepCheck> check_;
  std::optional<Soak> soak_;
  std::size_t checked_traces_ = 0;
  std::unique_ptr<executor::Session> session_;
};

}  // namespace

PointData run_point(const PlannedPoint& point, const PointContext& context) {
  PointData data = describe_point(point);
  if (data.status == PointStatus::skipped) return data;
  const std::vector<RankRole> roles =
      rank_roles(point.world_ranks, context.config.fill, context.site.node_of_rank);
  std::vector<int> playing;
  for (std::size_t rank = 0; rank < roles.size(); ++rank) {
    if (roles[rank].replica >= 0) playing.push_back(static_cast<int>(rank));
  }
  if (share_cores(playing, context.facts, context.site.node_of_rank)) {
    data.labels.emplace_back("oversubscribed");
  }
  if (context.executor.describe().shared_device) data.labels.emplace_back("shared-gpu");
  data.injections = point.injections;
  if (!data.injections.empty()) data.labels.emplace_back("injected");
  data.started = base::utc_now();
  {
    PointRun run{point, context, roles[static_cast<std::size_t>(context.world.rank())]};
    if (run.plays()) run.run(data);
    const Activity::Idle idle{context.progress.activity()};
    context.world.quiet_barrier();
  }
  data.ended = base::utc_now();
  // Ranks that did not play learn the status here.
  data.status =
      static_cast<PointStatus>(context.world.broadcast(static_cast<std::int64_t>(data.status), 0));
  return data;
}

}  // namespace isoscale::runner
