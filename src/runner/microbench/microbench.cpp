// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "program/check_races_and_matching.hpp"
#include "runner/measure/gather_point_and_sample_devices.hpp"
#include "runner/microbench/measure_case.hpp"
#include "runner/microbench/rows_and_link_classes.hpp"
#include "runner/watch/activity_and_progress_line.hpp"
#include "units/quantity_text.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::runner::microbench {
namespace {

using results::PointStatus;
using results::RowData;
using workloads::Bench;
using workloads::Case;

class BenchRun {
 public:
  explicit BenchRun(const measure::MeasuredPoint& point)
      : point_(point),
        hooks_(point.planned.workload->bench),
        data_(point.data),
        request_(point.planned.request),
        begin_(comm::now()),
        gpu_(point.in_point() ? point.context.gpu_uuid() : "") {
    for (const int rank : point.planned.world_ranks) {
      names_.push_back(rank_name(rank, point.context.facts[static_cast<std::size_t>(rank)].host));
    }
    if (hooks_.timeout != nullptr) timeout_ = hooks_.timeout(request_);
  }

  void run() {
    batches_ = hooks_.batches(request_);
    for (batch_ = 0; batch_ < batches_ && data_.status != PointStatus::failed; ++batch_) {
      run_batch();
    }
    conclude();
  }

 private:
  /// Plays the cases of a batch in one session. If ranks time out, this session cannot play again,
  /// and a new one plays the remaining cases.
  void run_batch() {
    std::size_t next_case = 0;
    first_row_ = data_.rows.size();
    do {
      session_.reset();  // frees memory and communicators before the next session
      if (!built()) return;
      measure::MeasuredPoint::Prepared prepared =
          point_.prepare(bench_.set, point_.sub_world, bench_.session);
      if (!prepared.unsupported.empty()) {
        return skip_rows(prepared.unsupported, bench_.cases[next_case].row_begin);
      }
      if (!prepared.session) return;
      session_ = std::move(prepared.session);
      if (point_.in_point() && next_case == 0) {
        measure::collect_session(point_.sub_world, session_->facts(), data_);
      }
      next_case = run_session(next_case);
    } while (next_case < bench_.cases.size());
  }

  /// Plays the cases from index `next_case` on, until a rank times out. Returns the index of the
  /// case with which the next session must begin. If no rank times out, calls check_case() for all
  /// cases of the batch and returns their number.
  std::size_t run_session(std::size_t next_case) {
    session_->play({.section = program::Section::setup});
    Expectations expectations{bench_.set.of(point_.sub_world.rank()), bench_.set.mesh.size()};
    for (; next_case < bench_.cases.size(); ++next_case) {
      const Case& one = bench_.cases[next_case];
      if (std::ranges::all_of(rows_of(one), has_silent_pair)) {
        add_rows(one, {}, {});
        continue;
      }
      const CaseEnd end = run_case(next_case, expectations);
      if (end == CaseEnd::complete) continue;
      session_->abandon();
      return take_note(one, end) ? next_case : next_case + 1;
    }
    for (std::size_t i = 0; i < bench_.cases.size(); ++i) check_case(i, expectations);
    return next_case;
  }

  [[nodiscard]] std::span<const workloads::RowSpec> rows_of(const Case& one) const {
    return std::span{bench_.rows}.subspan(one.row_begin, one.row_end - one.row_begin);
  }
  static bool has_silent_pair(const workloads::RowSpec& row) { return row.silent.has_value(); }

  /// Decides how to go on after a case has timed out. If a rank that got no answer belongs to a row
  /// of two ranks, the pair is skipped from now on; the function returns true, and the case can be
  /// played again without such pairs. Otherwise the whole case has failed, and it returns false.
  bool take_note(const Case& one, CaseEnd end) {
    constexpr int nobody = -1;
    const int mine = end == CaseEnd::timed_out ? point_.sub_world.rank() : nobody;
    std::vector<int> waiting = point_.active.all_gather(mine);
    std::erase(waiting, nobody);  // leaves the ranks that got no answer in time
    bool has_pairs = false;
    for (const workloads::RowSpec& row : rows_of(one)) {
      const bool is_pair = row.number.contains("src") && row.number.contains("dst");
      const bool waits = std::ranges::any_of(
          row.ranks, [&](int rank) { return std::ranges::find(waiting, rank) != waiting.end(); });
      if (!is_pair || !waits || row.silent) continue;
      const auto [low, high] = std::ranges::minmax(row.ranks);
      request_.silent_pairs.emplace_back(low, high);
      has_pairs = true;
    }
    if (!has_pairs && point_.leads()) {
      for (const workloads::RowSpec& row : rows_of(one)) {
        data_.rows.push_back(
            row_of(row, PointStatus::failed,
                   fmt::format("no answer (time limit {}) on {}", units::format(timeout_),
                               names_[static_cast<std::size_t>(waiting.front())])));
      }
    }
    return has_pairs;
  }

  bool built() {
    point_.context.progress.doing("preparing");
    return point_.agreed(comm::problem_in([&] {
      bench_ = hooks_.build(request_, batch_);
      if (point_.leads()) program::check(bench_.set);
    }));
  }

  void skip_rows(const std::string& reason, std::size_t first) {
    for (const workloads::RowSpec& spec : std::span{bench_.rows}.subspan(first)) {
      data_.rows.push_back(row_of(spec, PointStatus::skipped, reason));
    }
  }

  /// Returns the time for one case: the point's remaining time divided by the number of remaining
  /// cases, but at least a fifth of the point's whole time divided by the number of all cases.
  /// Later batches are assumed to have as many cases as this one.
  [[nodiscard]] units::Seconds budget(std::size_t next_case) const {
    const double spent = point_.active.all_max(units::to_seconds(comm::now() - begin_).value());
    const double total = point_.context.effort.max_time.value();
    const auto cases = static_cast<double>(bench_.cases.size());
    const double left = cases - static_cast<double>(next_case) + cases * (batches_ - 1 - batch_);
    const double fair = total / (cases * batches_);
    return units::Seconds{std::max((total - spent) / left, 0.2 * fair)};
  }

  CaseEnd run_case(std::size_t index, Expectations& expectations) {
    const Case& one = bench_.cases[index];
    point_.context.progress.doing(title_of(bench_.rows[one.row_begin]));
    const bool is_apart = std::ranges::any_of(
        rows_of(one), [](const workloads::RowSpec& row) { return row.stream.has_value(); });
    CaseRecord record = play_case(
        {.session = *session_,
         .one = one,
         .section = bench_.set.of(point_.sub_world.rank()).section(one.section),
         .streams = is_apart ? Streams::apart : Streams::joined,
         .gpu = gpu_.sources(),
         .active = point_.active,
         .share = point_.share,
         .effort = point_.context.effort,
         .limits = {.budget = budget(index), .timeout = timeout_, .bounds = request_.bounds}});
    if (record.end != CaseEnd::complete) return record.end;
    if (one.wants_estimate) record.estimate = session_->estimate(one.section);
    record.arithmetic = session_->arithmetic(one.section);
    RankReport mine{.plays = record.plays, .stream_times = record.stream_times};
    note_gpu(record.gpu, mine);
    if (!one.check) mine.wrong = compared(index, expectations);
    if (point_.in_point()) add_rows(one, record, measure::gather_records(point_.sub_world, mine));
    return CaseEnd::complete;
  }

  /// Compares the results of a case with the expected ones. Returns the number of wrong elements on
  /// this rank; absent if this rank has nothing to compare.
  std::optional<std::int64_t> compared(std::size_t index, Expectations& expectations) {
    const Case& one = bench_.cases[index];
    const std::vector<workloads::Expectation> expected =
        hooks_.expect == nullptr ? std::vector<workloads::Expectation>{}
                                 : hooks_.expect(request_, batch_, index, point_.sub_world.rank());
    const std::span<const program::Gemm> products =
        one.check ? std::span<const program::Gemm>{one.check->products}
                  : std::span<const program::Gemm>{};
    if (expected.empty() && products.empty()) return std::nullopt;
    std::int64_t wrong = 0;
    for (const Comparison& found :
         {expectations.compare(*session_, expected), expectations.compare(*session_, products)}) {
      wrong += static_cast<std::int64_t>(found.wrong);
      if (found.wrong == 0 || !first_wrong_.empty()) continue;
      first_wrong_ = fmt::format("{}: {} wrong elements, the first is {}",
                                 title_of(bench_.rows[one.row_begin]), found.wrong, found.first);
    }
    return wrong;
  }

  /// Checks a case whose results are compared only after all cases have been timed: plays the
  /// section that makes inputs with known results, then the case, and compares. Stores the outcome
  /// in the case's rows. If an injected delay replaces multiplications, there are no results to
  /// check.
  void check_case(std::size_t index, Expectations& expectations) {
    const Case& one = bench_.cases[index];
    if (!one.check || point_.faults.gemm_rate > 0) return;
    point_.context.progress.doing("checking " + title_of(bench_.rows[one.row_begin]));
    session_->play({.section = one.check->section});
    session_->play({.section = one.section});
    const RankReport mine{.wrong = compared(index, expectations)};
    if (!point_.in_point()) return;
    const std::vector<RankReport> reports = measure::gather_records(point_.sub_world, mine);
    if (!point_.leads()) return;
    for (std::size_t row = one.row_begin; row < one.row_end; ++row) {
      note_wrong(bench_.rows[row], reports, data_.rows[first_row_ + row]);
    }
  }

  void add_rows(const Case& one, const CaseRecord& record, std::span<const RankReport> reports) {
    if (!point_.leads()) return;
    for (const workloads::RowSpec& spec : rows_of(one)) {
      if (spec.silent) {
        const auto& low = names_[static_cast<std::size_t>(spec.silent->first)];
        const auto& high = names_[static_cast<std::size_t>(spec.silent->second)];
        data_.rows.push_back(row_of(spec, PointStatus::failed,
                                    fmt::format("no answer (time limit {}) between {} and {}",
                                                units::format(timeout_), low, high)));
        continue;
      }
      RowData& row = data_.rows.emplace_back(row_of(spec, one, record, reports));
      if (!point_.context.executor.describe().shared_device) continue;
      row.times.clear();
      row.call_times.clear();
      if (row.status != PointStatus::ok) continue;  // a row with a wrong result stays failed
      row.status = PointStatus::skipped;
      row.reason = measure::shared_gpu_reason;
    }
  }

  /// Sets the point's status and verification from its rows, and from the wrong elements that any
  /// rank has found. Collective over the point and its copies.
  void conclude() {
    session_.reset();
    if (data_.status == PointStatus::failed) return;
    const bool is_right = point_.agreed(first_wrong_);
    const auto checked =
        std::ranges::count_if(data_.rows, [](const RowData& row) { return row.wrong.has_value(); });
    if (checked > 0 || !is_right) {
      data_.verified = is_right;
      data_.verification =
          is_right ? fmt::format("{} of {} rows compared bit for bit", checked, data_.rows.size())
                   : data_.reason;
    }
    const bool all_skipped =
        !data_.rows.empty() && std::ranges::all_of(data_.rows, [](const RowData& row) {
          return row.status == PointStatus::skipped;
        });
    if (all_skipped) measure::end_as(PointStatus::skipped, data_.rows.front().reason, data_);
    if (!point_.context.rank_facts.empty()) {
      classify_rows(LinkClasses{point_.context.rank_facts}, data_);
    }
    if (hooks_.expected_bandwidth != nullptr) {
      if (const auto least = hooks_.expected_bandwidth(request_)) {
        judge_bandwidth(data_.rows, *least, names_);
      }
    }
    // The point fails if one of its rows has failed, for example for too little bandwidth. Only
    // rank 0 of the point has all rows; other ranks learn the status at the end of the point.
    const std::string reason = reason_of_failed(data_.rows);
    if (!reason.empty() && data_.status != PointStatus::failed) {
      measure::end_as(PointStatus::failed, reason, data_);
    }
  }

  const measure::MeasuredPoint& point_;
  const workloads::BenchHooks& hooks_;
  results::PointData& data_;
  /// The point's request, to which pairs that did not answer are added.
  workloads::Request request_;
  std::vector<std::string> names_;  ///< rank_name() of each rank of the point
  units::Seconds timeout_{};
  units::Nanoseconds begin_;
  int batches_ = 0, batch_ = 0;
  std::size_t first_row_ = 0;  ///< index of this batch's first row in the point's rows
  Bench bench_;
  executor::SessionPtr session_;
  std::string first_wrong_;  ///< text about the first wrong element on this rank
  measure::GpuWatch gpu_;
};

}  // namespace

void run_bench(const measure::MeasuredPoint& point) { BenchRun{point}.run(); }

}  // namespace isoscale::runner::microbench
