// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/bench_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "program/check.hpp"
#include "runner/bench_case.hpp"
#include "runner/bench_rows.hpp"
#include "runner/collect.hpp"
#include "runner/expectations.hpp"
#include "units/text.hpp"
#include "workloads/bench/bench.hpp"

namespace isoscale::runner {
namespace {

using results::PointStatus;
using results::RowData;
using workloads::Bench;
using workloads::Case;

class BenchRun {
 public:
  BenchRun(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
           results::PointData& data)
      : point_(point),
        context_(context),
        hooks_(point.workload->bench),
        place_(place),
        data_(data),
        begin_(comm::now()) {}

  void run() {
    batches_ = hooks_.batches(point_.request);
    for (batch_ = 0; batch_ < batches_ && data_.status != PointStatus::failed; ++batch_) {
      run_batch();
    }
    conclude();
  }

 private:
  /// The same answer on every rank that plays.
  bool agreed(const std::string& problem) {
    const comm::Vote vote = comm::all_ok(place_.active, problem);
    if (!vote.ok) fail(vote.why);
    return vote.ok;
  }
  void fail(std::string reason) {
    data_.status = PointStatus::failed;
    data_.reason = std::move(reason);
  }

  void run_batch() {
    session_.reset();  // its memory and communicators go before the next one's come
    if (!built()) return;
    const std::optional<std::string> unsupported = prepared();
    if (data_.status == PointStatus::failed) return;
    if (unsupported) return skip_rows(*unsupported);
    if (place_.share == Share::in_point) {
      collect_session(place_.sub_world, session_->facts(), data_);
    }
    session_->play(program::Section::setup, executor::Trace::off);
    Expectations expectations{bench_.set.of(place_.sub_world.rank()), bench_.set.mesh.size()};
    for (std::size_t i = 0; i < bench_.cases.size(); ++i) run_case(i, expectations);
  }

  bool built() {
    context_.progress.doing("preparing");
    std::string problem;
    try {
      bench_ = hooks_.build(point_.request, batch_);
      expected_.clear();
      if (hooks_.expect != nullptr) {
        expected_ = hooks_.expect(point_.request, batch_, place_.sub_world.rank());
      }
      if (place_.sub_world.rank() == 0) program::check(bench_.set);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    return agreed(problem);
  }

  /// Why the executor cannot, when it cannot; what else goes wrong fails the point.
  std::optional<std::string> prepared() {
    std::string problem, unsupported;
    try {
      session_ = context_.executor.prepare(bench_.set, place_.sub_world, bench_.session);
    } catch (const executor::Unsupported& error) {
      unsupported = error.what();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!agreed(problem)) return std::nullopt;
    const comm::Vote vote = comm::all_ok(place_.active, unsupported);
    if (vote.ok) return std::nullopt;
    session_.reset();
    return unsupported.empty() ? vote.why : unsupported;
  }

  void skip_rows(const std::string& reason) {
    for (const workloads::RowSpec& spec : bench_.rows) {
      RowData& row = data_.rows.emplace_back(row_of(spec));
      row.status = PointStatus::skipped;
      row.reason = reason;
    }
  }

  /// What is left of the point's time, dealt out over the cases that are left; a batch that is
  /// still to come counts like this one.
  [[nodiscard]] units::Seconds budget(std::size_t next_case) const {
    const double spent = place_.active.all_max(units::to_seconds(comm::now() - begin_).value());
    const double total = context_.effort.max_time.value();
    const auto cases = static_cast<double>(bench_.cases.size());
    const double left = cases - static_cast<double>(next_case) + cases * (batches_ - 1 - batch_);
    const double fair = total / (cases * batches_);
    return units::Seconds{std::max((total - spent) / left, 0.2 * fair)};
  }

  void run_case(std::size_t index, Expectations& expectations) {
    const Case& one = bench_.cases[index];
    context_.progress.doing(title_of(bench_.rows[one.row_begin]));
    const bool is_apart =
        std::any_of(bench_.rows.begin() + static_cast<std::ptrdiff_t>(one.row_begin),
                    bench_.rows.begin() + static_cast<std::ptrdiff_t>(one.row_end),
                    [](const workloads::RowSpec& row) { return row.stream.has_value(); });
    CaseRecord record =
        play_case({.session = *session_,
                   .one = one,
                   .section = bench_.set.of(place_.sub_world.rank()).section(one.section),
                   .streams = is_apart ? Streams::apart : Streams::joined},
                  place_.active, place_.share, context_.effort, budget(index));
    if (one.wants_estimate) record.estimate = session_->estimate(one.section);
    RankReport mine{.plays = record.plays, .stream_times = record.stream_times};
    if (!expected_.empty() && !expected_[index].empty()) {
      const Comparison found = expectations.compare(*session_, expected_[index]);
      mine.wrong = found.wrong;
      if (found.wrong > 0 && first_wrong_.empty()) {
        first_wrong_ = fmt::format("{}: {} wrong elements, the first is {}",
                                   title_of(bench_.rows[one.row_begin]), found.wrong, found.first);
      }
    }
    if (place_.share == Share::in_point) add_rows(one, record, mine);
  }

  void add_rows(const Case& one, const CaseRecord& record, const RankReport& mine) {
    const std::vector<double> packed = pack(mine);
    std::vector<RankReport> reports;
    for (const auto& part : place_.sub_world.gather(std::as_bytes(std::span{packed}))) {
      reports.push_back(unpack(part));
    }
    if (place_.sub_world.rank() != 0) return;
    for (std::size_t i = one.row_begin; i < one.row_end; ++i) {
      RowData& row = data_.rows.emplace_back(row_of(bench_.rows[i], one, record, reports));
      if (!context_.executor.describe().shared_device) continue;
      row.times.clear();
      row.call_times.clear();
      if (row.status == PointStatus::ok) {
        row.status = PointStatus::skipped;
        row.reason = "ranks share a GPU: verified, not measured";
      }
    }
  }

  /// The point as a whole, from its rows and from what ranks found wrong.
  void conclude() {
    session_.reset();
    if (data_.status == PointStatus::failed) return;
    const bool is_right = agreed(first_wrong_);
    if (hooks_.expect != nullptr) {
      data_.verified = is_right;
      const auto checked = std::ranges::count_if(
          data_.rows, [](const RowData& row) { return row.wrong.has_value(); });
      data_.verification =
          is_right ? fmt::format("{} of {} rows compared bit for bit", checked, data_.rows.size())
                   : data_.reason;
    }
    const bool all_skipped =
        !data_.rows.empty() && std::ranges::all_of(data_.rows, [](const RowData& row) {
          return row.status == PointStatus::skipped;
        });
    if (all_skipped) {
      data_.status = PointStatus::skipped;
      data_.reason = data_.rows.front().reason;
    }
    data_.stopped_because = "";
  }

  const PlannedPoint& point_;
  const PointContext& context_;
  const workloads::BenchHooks& hooks_;
  const BenchPlace& place_;
  results::PointData& data_;
  units::Nanoseconds begin_;
  int batches_ = 0, batch_ = 0;
  Bench bench_;
  std::vector<std::vector<workloads::Expectation>> expected_;
  std::unique_ptr<executor::Session> session_;
  std::string first_wrong_;  ///< on this rank
};

}  // namespace

void run_bench(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data) {
  BenchRun{point, context, place, data}.run();
}

}  // namespace isoscale::runner
