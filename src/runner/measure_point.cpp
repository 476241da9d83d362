// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run_points.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "runner/measure/gather_point_and_sample_devices.hpp"
#include "runner/measure/reference_check.hpp"
#include "runner/measure/step_checksums_and_soak.hpp"
#include "runner/microbench/measure_case.hpp"
#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "runner/plan/injected_faults.hpp"
#include "runner/plan/launch_site.hpp"
#include "runner/run_file.hpp"
#include "runner/serving/serving_point.hpp"
#include "runner/watch/activity_and_progress_line.hpp"
#include "units/quantity_text.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;

// A run file lists at most this many replays of a soak whose results differed.
constexpr std::size_t most_soak_findings = 1000;

std::string standing_text(const plan::StepLoop& loop) {
  const std::string text = fmt::format("{} of {} steps count, {}", loop.counted(), loop.steps(),
                                       units::format(loop.elapsed()));
  const std::optional<double> width = loop.half_width();
  return width ? fmt::format("{}, ±{}", text, units::format_percent(*width)) : text;
}

/// Changes the times of the traced steps in `record` to what this rank's clock would show with the
/// injected clock error. It is done after the measurement, which it must not slow down.
void misread(const comm::ClockSync& clocks, measure::Record& record) {
  for (timeline::StepTrace& trace : record.traces) {
    trace.begin = clocks.shown(trace.begin);
    trace.end = clocks.shown(trace.end);
    for (timeline::Span& span : trace.spans) {
      span.start = clocks.shown(span.start);
      span.end = clocks.shown(span.end);
    }
  }
}

/// Measures a point on one rank, which plays either the point itself or a copy of it.
class PointRun {
 public:
  PointRun(const plan::PlannedPoint& point, const measure::PointContext& context,
           plan::RankRole role, PointData& data)
      : workload_(*point.workload),
        request_(point.request),
        context_(context),
        data_(data),
        sub_world_(context.world.split(role.replica, role.position)),
        active_(context.world.split(role.replica < 0 ? -1 : 0, context.world.rank())),
        // Copies of the point get no faults, and their times are not kept. The twin, a small
        // version of the point by which its programs are verified, is played without faults, so
        // that a wrong result of it is a real error.
        point_{.planned = point,
               .context = context,
               .sub_world = sub_world_,
               .active = active_,
               .data = data,
               .faults = plan::faults_of(context.config.injections, point.world_ranks,
                                         context.world.rank(), point.request.seed),
               .share = role.replica == 0 ? measure::Share::in_point : measure::Share::replica} {}

  /// A part of the measurement of a point, such as its verification or its timed steps.
  struct Section {
    std::string_view doing;  ///< text for the progress display; "" if the section sets its own
    bool is_wanted;
    /// Plays the section and judges its results. Collective over all ranks that play the point or a
    /// copy. Stores the results in `data_` on rank 0 of the point, and the point's status in
    /// `data_` on all these ranks. Returns false if the point ends with this section.
    bool (PointRun::*play)();
  };

  [[nodiscard]] std::array<Section, 8> sections() const {
    using workloads::Kind;
    const bool has_steps = workload_.kind == Kind::steps;
    return {Section{"measuring the speed of each rank", microbench::partitions_by_speed(request_),
                    &PointRun::partition},
            Section{"verifying", workload_.twin != nullptr, &PointRun::verify},
            Section{"", workload_.kind == Kind::rows, &PointRun::play_cases},
            Section{"", workload_.kind == Kind::requests, &PointRun::serve_requests},
            Section{"preparing", has_steps, &PointRun::prepare},
            Section{"measuring", has_steps, &PointRun::play_steps},
            Section{"soaking", has_steps && context_.config.soak.has_value(), &PointRun::soak},
            Section{"playing without communication", has_steps && can_play_solo(),
                    &PointRun::play_solo}};
  }

 private:
  /// Returns the ranks of the point whose spans (times of ops) are kept.
  [[nodiscard]] std::vector<int> traced() const {
    return measure::traced_ranks(set_.mesh, context_.config.trace_ranks);
  }

  /// Adds a verdict to the data. All ranks of the point have the same verdict, and so have all
  /// ranks of a copy, but a copy may have another verdict than the point. If one verdict is bad,
  /// the point fails. The reason is this rank's own verdict if that is bad, else another's.
  void judge(const measure::Verdict& verdict) {
    data_.verified = data_.verified.value_or(true) && verdict.ok;
    if (!data_.verification.empty()) data_.verification += "; ";
    data_.verification += verdict.detail;
    if (data_.status != PointStatus::ok) return;
    const comm::Vote vote = comm::all_ok(active_, verdict.ok ? "" : verdict.detail);
    if (vote.ok) return;
    measure::end_as(PointStatus::failed,
                    verdict.ok ? "a copy of the point: " + vote.why : verdict.detail, data_);
  }

  bool play_cases() {
    microbench::run_bench(point_);
    return false;
  }
  bool serve_requests() {
    serving::run_serve(point_);
    return false;
  }

  /// Measures the speeds of ranks, by which the option partition=proportional divides the work.
  bool partition() {
    program::ProgramSet set;
    const std::string problem = comm::problem_in(
        [&] { set = microbench::largest_multiplication(workload_.build(request_)); });
    return point_.agreed(problem) && point_.agreed(comm::problem_in([&] {
      request_.speed_of_rank =
          microbench::measure_speeds(set, context_.executor, sub_world_, point_.faults);
    }));
  }

  bool verify() {
    const measure::Verdict twin =
        measure::verify_twin(workload_, request_, context_.executor, sub_world_);
    if (const comm::Vote vote = comm::all_ok(active_, twin.unsupported); !vote.ok) {
      measure::end_as(PointStatus::skipped, twin.unsupported.empty() ? vote.why : twin.unsupported,
                      data_);
      return false;
    }
    // The algorithms of the twin's GEMMs are stored, too, so that a later run with
    // --gemm-algorithms finds all algorithms that it needs.
    if (point_.in_point()) measure::collect_gemm_choices(sub_world_, twin.gemm_choices, data_);
    judge(twin);
    if (microbench::partitions_by_speed(request_)) {
      data_.verification +=
          fmt::format("; replicas were dealt {} microbatches by measured speed",
                      fmt::join(workloads::stack::distribution_of(request_).microbatches, ", "));
    }
    return data_.status == PointStatus::ok;
  }

  bool prepare() {
    if (context_.executor.describe().shared_device) {
      measure::end_as(PointStatus::skipped, measure::shared_gpu_reason, data_);
      return false;
    }
    const std::string problem = comm::problem_in([&] {
      set_ = workload_.build(request_);
      if (context_.world.rank() == 0) describe_programs();
      if (context_.effort.trace_steps > 0) solo_ = program::add_solo_step(set_);
      if (sub_world_.rank() == 0) program::check(set_);
      add_checks();
    });
    if (!point_.agreed(problem)) return false;
    const program::Registration registration = workloads::stack::option_of(
        request_, "registration", &workloads::stack::TrainingOptions::registration);
    auto [session, unsupported] = point_.prepare(set_, sub_world_, {.registration = registration});
    if (!unsupported.empty()) measure::end_as(PointStatus::skipped, unsupported, data_);
    session_ = std::move(session);
    return session_ != nullptr;
  }

  void add_checks() {
    std::vector<int> flipping;
    if (context_.config.soak && point_.in_point()) {
      flipping = plan::flipping_ranks(context_.config.injections, point_.planned.world_ranks);
    }
    check_.emplace(set_, flipping);
    if (context_.config.soak) soak_.emplace(set_, *check_, request_.seed);
  }

  void describe_programs() {
    const std::vector<program::Facts> facts = plan::facts_of_programs(set_);
    for (const std::uint32_t program : set_.program_of_rank) {
      data_.flop_of_rank.push_back(facts[program].flop.value());
      data_.peak_live_microbatches.push_back(facts[program].peak_live_microbatches);
    }
    data_.outline = program::outline(set_, program::Section::step);
  }

  /// Plays the timed and traced steps. The step before them and the one after them are checked.
  bool play_steps() {
    session_->play({.section = program::Section::setup});
    check_->step(*session_, sub_world_);
    const comm::ClockSync clocks{
        sub_world_, point_.in_point()
                        ? plan::clock_fault_of(context_.config.injections, context_.world.rank())
                        : std::nullopt};
    measure::SamplingDuty duty;  // a rank that plays a copy of the point samples nothing
    if (point_.in_point()) {
      duty =
          measure::sampling_duty(sub_world_.rank(), point_.planned.world_ranks,
                                 context_.site.node_of_rank, context_.facts, context_.gpu_uuid());
    }
    measure::PointSampler sampler{duty};
    measure::Record record =
        measure::measure(*session_, set_.of(sub_world_.rank()).step(), active_, point_.share,
                         context_.effort, [this](const plan::StepLoop& loop) { look_at(loop); });
    const std::vector<results::DeviceSeries> sampled = sampler.stop();
    const comm::ClockFit clock = clocks.fit();
    misread(clocks, record);
    last_step_ = units::Seconds{record.step_times.back()};
    check_->step(*session_, sub_world_);
    judge(check_->verdict());
    if (point_.in_point()) {
      measure::collect(sub_world_, record, clock, session_->facts(), traced(), data_);
      measure::collect_device_series(sub_world_, record, sampled, data_);
    }
    return true;
  }

  /// Called after each block of steps that follows warm-up. Shows the progress. If steps were
  /// traced since the last call, also checks the weights.
  void look_at(const plan::StepLoop& loop) {
    context_.progress.doing(standing_text(loop));
    if (loop.traced_blocks() == checked_traces_) return;
    checked_traces_ = loop.traced_blocks();
    check_->weights(*session_, sub_world_);
  }

  bool soak() {
    const auto tell = [&](const measure::SoakResult& so_far) {
      context_.progress.doing(
          fmt::format("soaking: {} replays, {} differ", so_far.replays, so_far.differing.size()));
    };
    const measure::SoakResult result =
        soak_->run(*session_, sub_world_, {.time = *context_.config.soak}, tell);
    data_.soak.replays = result.replays;
    data_.soak.seconds = result.time.value();
    for (const measure::Differing& differing : result.differing) {
      if (data_.soak.differing.size() == most_soak_findings) break;
      data_.soak.differing.push_back(
          fmt::format("replay {}: {}", differing.replay, differing.sentence));
    }
    judge({.ok = result.differing.empty(), .detail = "soak: " + measure::soak_text(result)});
    return true;
  }

  /// True if steps are traced and no ranks share cores. On shared cores the durations without
  /// communication would be too long: all ranks would compute at the same time, while in the real
  /// step ranks that wait leave the cores to others.
  [[nodiscard]] bool can_play_solo() const {
    return context_.effort.trace_steps > 0 &&
           std::ranges::find(data_.labels, "oversubscribed") == data_.labels.end();
  }

  /// Plays the step without communication. This must be the last section of the point: such a step
  /// computes wrong results, which nothing may use afterwards.
  bool play_solo() {
    const double step = active_.all_max(last_step_.value());
    const std::vector<units::Nanoseconds> times =
        measure::measure_solo(*session_, set_.of(sub_world_.rank()), *solo_, active_,
                              plan::solo_plays(units::Seconds{step}, context_.effort.max_time));
    if (point_.in_point()) measure::collect_solo(sub_world_, times, traced(), data_);
    return true;
  }

  const workloads::Workload& workload_;
  /// The point's request, to which the measured speeds of ranks are added.
  workloads::Request request_;
  const measure::PointContext& context_;
  PointData& data_;
  /// The ranks of the point or, on a rank that plays a copy, of this copy.
  comm::Communicator sub_world_;
  comm::Communicator active_;  ///< the ranks of the point and of all its copies
  measure::MeasuredPoint point_;
  program::ProgramSet set_;
  std::optional<program::Section> solo_;  ///< the section that is the step without communication
  std::optional<measure::StepCheck> check_;
  std::optional<measure::Soak> soak_;
  std::size_t checked_traces_ = 0;  ///< the number of traced blocks when weights were last checked
  units::Seconds last_step_{};      ///< this rank's time of the last step
  executor::SessionPtr session_;
};

}  // namespace

PointData run_point(const plan::PlannedPoint& point, const measure::PointContext& context) {
  PointData data = describe_point(point);
  if (data.status == PointStatus::skipped) return data;
  const std::vector<plan::RankRole> roles =
      plan::rank_roles(point.world_ranks, context.config.fill, context.site.node_of_rank);
  std::vector<int> playing;
  for (std::size_t rank = 0; rank < roles.size(); ++rank) {
    if (roles[rank].replica >= 0) playing.push_back(static_cast<int>(rank));
  }
  if (plan::share_cores(playing, context.facts, context.site.node_of_rank)) {
    data.labels.emplace_back("oversubscribed");
  }
  if (context.executor.describe().shared_device) data.labels.emplace_back("shared-gpu");
  data.injections = point.injections;
  if (!data.injections.empty()) data.labels.emplace_back("injected");
  data.started = base::utc_now();
  {
    const plan::RankRole role = roles[static_cast<std::size_t>(context.world.rank())];
    // The constructor is collective over the world, which it splits into smaller communicators.
    PointRun run{point, context, role, data};
    if (role.replica >= 0) {
      for (const PointRun::Section& section : run.sections()) {
        if (!section.is_wanted) continue;
        if (!section.doing.empty()) context.progress.doing(section.doing);
        if (!(run.*section.play)()) break;
      }
    }
    const watch::Activity::Idle idle{context.progress.activity()};
    context.world.quiet_barrier();
  }
  data.ended = base::utc_now();
  // Ranks that neither played the point nor a copy learn the status here.
  data.status = context.world.broadcast(data.status);
  return data;
}

}  // namespace isoscale::runner
