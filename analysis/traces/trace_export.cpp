// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/traces/trace_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/output_file.hpp"
#include "base/text.hpp"
#include "program/op.hpp"
#include "program/outline.hpp"
#include "results/records/point_facts.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::traces {
namespace {

using program::OutlineOp;
using results::PointData;
using timeline::StepTrace;
using units::Nanoseconds;
using Json = nlohmann::ordered_json;

/// Returns a value as JSON, in which bytes that are not UTF-8 are replaced.
std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A row of the trace viewer, identified by process and thread.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

struct TraceEvent {
  Track track;
  std::string_view name;
  std::string_view category;
  Nanoseconds start, end;
  Json arguments;
};

/// The two ends of an arrow, which lie within the sender's and the receiver's event.
enum class FlowEnd : std::uint8_t { start, finish };

/// Writes the events of a trace as one JSON object. It does not keep events in memory.
class TraceWriter {
 public:
  /// Writes the beginning of the JSON object. `out` must outlive this writer.
  explicit TraceWriter(std::ostream& out) : out_(out) {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
  }

  void name_process(std::int64_t process, std::string_view name) {
    write_name("process", {.process = process}, name, process);
  }
  void name_thread(const Track& track, std::string_view name) {
    write_name("thread", track, name, track.thread);
  }
  /// Writes an interval. An interval that ends before it starts gets the length 0.
  void write(const TraceEvent& event) {
    const Nanoseconds length = std::max(event.end - event.start, Nanoseconds{0});
    write_line(fmt::format(
        R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
        json_text(event.name), json_text(event.category), event.track.process, event.track.thread,
        microseconds(event.start), microseconds(length), json_text(event.arguments)));
    ++events_;
  }
  void write_flow(FlowEnd end, std::uint64_t id, const Track& track, Nanoseconds time) {
    // The attribute "bp":"e" makes the arrow end at the interval that contains the time, not at the
    // next.
    write_line(fmt::format(
        R"({{"ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{}}})",
        end == FlowEnd::start ? "s" : "f", id, track.process, track.thread, microseconds(time),
        end == FlowEnd::start ? "" : R"(,"bp":"e")"));
  }
  void finish() { out_ << "\n]}\n"; }

  [[nodiscard]] std::uint64_t events() const { return events_; }  ///< intervals written so far

 private:
  void write_line(const std::string& line) {
    out_ << (is_first_ ? "\n" : ",\n") << line;
    is_first_ = false;
  }
  /// Names a process or a thread; viewers show them in ascending order of `place`.
  void write_name(std::string_view kind, const Track& track, std::string_view name,
                  std::int64_t place) {
    write_line(
        fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})", kind,
                    track.process, track.thread, json_text(name)));
    write_line(fmt::format(
        R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", kind,
        track.process, track.thread, place));
  }

  std::ostream& out_;
  bool is_first_ = true;
  std::uint64_t events_ = 0;
};

/// Returns the ranks that take part in a communication op of `rank`, including `rank` itself.
std::vector<int> partners_of(const results::PointData& point, int rank,
                             const program::OutlineOp& op) {
  if (op.kind != program::OpKind::exchange) return mesh::group_members(point.mesh, rank, op.axes);
  std::vector<int> partners{rank};
  for (const auto& transfer : point.outline.of(rank).transfers_of(op)) {
    partners.push_back(mesh::neighbour(point.mesh, rank, transfer.axis, transfer.offset));
  }
  return partners;
}

constexpr std::int64_t step_thread = 0;  // thread of the whole steps; stream s has thread s + 1

/// Returns "hybrid tiny on 8 (dp=2,tp=2,pp=2): rank 3 (node017, NVIDIA H200)"; without the brackets
/// at the end if nothing is recorded about the rank.
std::string process_name(const results::RunData& run, const PointData& point, int rank) {
  std::string text = fmt::format("{} {} on {} ({}): rank {}", point.workload, point.model,
                                 point.ranks, mesh::to_string(point.mesh), world_rank(point, rank));
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  if (facts == nullptr) return text;
  const std::string gpu = text_of(*facts, "gpu_name");
  const std::string device = gpu.empty() ? text_of(*facts, "device") : gpu;
  return text + fmt::format(" ({}{}{})", facts->host, device.empty() ? "" : ", ", device);
}

/// Returns "gemm layer 0 mb 1, 64 x 256 x 64": the shape distinguishes the GEMMs of a layer. Files
/// older than schema 1.6 have FLOP in place of shapes: "gemm layer 0 mb 1, 25.2 MFLOP".
std::string name_of(const OutlineOp& op) {
  std::string name = program::label(op.kind, op.place);
  if (op.kind != program::OpKind::gemm || !(op.flop > 0)) return name;
  if (op.gemm == program::GemmShape{}) {
    return fmt::format("{}, {}", name, units::format(units::Flops{op.flop}));
  }
  return fmt::format("{}, {}", name, program::to_string(op.gemm));
}

Json arguments_of(const OutlineOp& op, std::uint32_t number, const mesh::Shape& mesh,
                  std::optional<Nanoseconds> wait) {
  Json arguments{{"op", number}, {"phase", program::name(op.place.phase)}};
  if (op.place.layer >= 0) arguments["layer"] = op.place.layer;
  if (op.place.microbatch >= 0) arguments["microbatch"] = op.place.microbatch;
  if (op.gemm != program::GemmShape{}) {
    arguments.update(
        {{"m", op.gemm.m}, {"n", op.gemm.n}, {"k", op.gemm.k}, {"batch", op.gemm.batch}});
  }
  if (op.flop > 0) arguments["flop"] = op.flop;
  if (op.bytes > 0) arguments["bytes"] = op.bytes;
  const mesh::AxisSet axes = mesh::varying(mesh, op.axes);
  if (!axes.empty()) arguments["axis"] = mesh::to_string(axes);
  if (wait) arguments["wait_us"] = static_cast<double>(wait->value()) / 1e3;
  return arguments;
}

/// The op of a rank at which the arrow of a message starts or finishes, and the arrow's number.
struct MessageEnd {
  std::uint32_t op = 0;
  FlowEnd end = FlowEnd::start;
  std::uint64_t id = 0;
};

/// Writes the traces of one point. In the file, the names of its processes begin with `launch`.
class PointExport {
 public:
  PointExport(const results::RunData& run, std::string launch, const PointData& point,
              std::int64_t first_process, std::uint64_t first_flow, TraceWriter& writer)
      : run_(run),
        launch_(std::move(launch)),
        point_(point),
        first_process_(first_process),
        next_flow_(first_flow),
        writer_(writer),
        steps_(breakdown::traced_steps(point)) {
    for (const breakdown::TracedStep& step : steps_.steps) {
      for (const StepTrace* const trace : step.traces) step_of_[trace] = &step;
    }
  }

  void run() {
    const std::vector<breakdown::TraceOfRank> steps = usable_steps();
    std::optional<Nanoseconds> first;
    for (const breakdown::TraceOfRank& traces : steps) {
      for (const StepTrace* const trace : traces) {
        if (trace != nullptr) first = std::min(first.value_or(trace->begin), earliest(*trace));
      }
    }
    if (!first) return;
    zero_ = *first;
    name_tracks(steps);
    for (const breakdown::TraceOfRank& traces : steps) write_step(traces);
  }

  [[nodiscard]] std::uint64_t next_flow() const { return next_flow_; }
  /// Adds notes on the traces and ranks that are missing from the export of the point `name`.
  void add_notes(const std::string& name, std::vector<std::string>& notes) const {
    const auto say = [&](const std::set<int>& ranks, const char* what) {
      if (ranks.empty()) return;
      notes.push_back(fmt::format("{}: {} {}", name, breakdown::rank_list(point_, ranks), what));
    };
    say(broken_, "left out: their traces are damaged");
    say(untraced_, "not traced");
    say(unaligned_, "without arrows: their clocks are not aligned");
  }

 private:
  [[nodiscard]] static Nanoseconds earliest(const StepTrace& trace) {
    Nanoseconds first = trace.begin;
    for (const timeline::Span& span : trace.spans) first = std::min(first, span.start);
    return first;
  }

  /// Returns, for each traced step in order of time, its usable traces, indexed by rank.
  std::vector<breakdown::TraceOfRank> usable_steps() {
    std::vector<breakdown::TraceOfRank> steps;
    for (int rank = 0; rank < point_.ranks; ++rank) untraced_.insert(rank);
    for (const timeline::Timeline& step : point_.traces) {
      steps.push_back(breakdown::usable_step(point_, step, broken_).traces);
      for (const StepTrace& trace : step.ranks) untraced_.erase(trace.rank);
    }
    const auto begin_of = [](const breakdown::TraceOfRank& traces) {
      const auto first = std::ranges::find_if(traces, [](const auto* trace) { return trace; });
      return first == traces.end() ? Nanoseconds{0} : (*first)->begin;
    };
    std::ranges::stable_sort(steps, {}, begin_of);
    return steps;
  }

  /// Returns how long op `op` of a trace waited for its partners, at most the length of its span; 0
  /// if the wait does not exceed the clock error. Absent for ops that do not communicate, for ops
  /// with a partner that was not traced or whose clock is not aligned, on ranks with a message that
  /// no op of the partner matches, and in steps that are not analysed.
  [[nodiscard]] std::optional<Nanoseconds> wait_of(const StepTrace& trace, std::uint32_t op) const {
    const OutlineOp& at = point_.outline.of(trace.rank).ops[op];
    const auto found = step_of_.find(&trace);
    if (!program::communicates(at.kind) || found == step_of_.end()) return std::nullopt;
    if (steps_.unmatched.contains(trace.rank)) return std::nullopt;
    const breakdown::TracedStep& step = *found->second;
    const std::vector<int> partners = partners_of(point_, trace.rank, at);
    if (partners.size() < 2 || !breakdown::all_known(step, partners)) return std::nullopt;
    const timeline::Span& span = trace.spans[op];
    return span.end - span.start -
           breakdown::transfer_time(span, step.waits[static_cast<std::size_t>(trace.rank)][op]);
  }

  void name_tracks(const std::vector<breakdown::TraceOfRank>& steps) {
    for (int rank = 0; rank < point_.ranks; ++rank) {
      const auto has_trace = [&](const breakdown::TraceOfRank& traces) {
        return traces[static_cast<std::size_t>(rank)] != nullptr;
      };
      if (std::ranges::none_of(steps, has_trace)) continue;
      writer_.name_process(process(rank), launch_ + process_name(run_, point_, rank));
      writer_.name_thread({.process = process(rank), .thread = step_thread}, "steps");
      const program::Outline& outline = point_.outline.of(rank);
      std::set<program::StreamId> used;
      for (const OutlineOp& op : outline.ops) used.insert(op.stream);
      for (const program::StreamId stream : used) {
        const std::string name = stream < outline.streams.size() ? outline.streams[stream]
                                                                 : fmt::format("stream {}", stream);
        writer_.name_thread(track(rank, stream), name);
      }
    }
  }

  /// Returns, for each rank, where the arrows of its messages begin and end. Messages of ranks
  /// whose clocks are not aligned have none.
  [[nodiscard]] std::map<int, std::vector<MessageEnd>> message_ends(
      const breakdown::TraceOfRank& traces) {
    breakdown::TraceOfRank comparable = traces;
    for (int rank = 0; rank < point_.ranks; ++rank) {
      if (traces[static_cast<std::size_t>(rank)] == nullptr || breakdown::aligned(point_, rank))
        continue;
      unaligned_.insert(rank);
      comparable[static_cast<std::size_t>(rank)] = nullptr;
    }
    std::map<int, std::vector<MessageEnd>> ends;
    for (const breakdown::Message& message : breakdown::messages(point_.outline, comparable)) {
      ends[message.sender].push_back({message.send, FlowEnd::start, next_flow_});
      ends[message.receiver].push_back({message.receive, FlowEnd::finish, next_flow_});
      ++next_flow_;
    }
    for (auto& [rank, list] : ends) {
      std::ranges::stable_sort(list, {}, [](const MessageEnd& at) {
        return std::pair{at.op, at.end};
      });
    }
    return ends;
  }

  void write_step(const breakdown::TraceOfRank& traces) {
    const auto ends = message_ends(traces);
    for (const StepTrace* const trace : traces) {
      if (trace == nullptr) continue;
      const auto found = ends.find(trace->rank);
      write_rank(*trace, found == ends.end() ? std::span<const MessageEnd>{} : found->second);
    }
  }

  void write_rank(const StepTrace& trace, std::span<const MessageEnd> ends) {
    writer_.write({.track = {.process = process(trace.rank), .thread = step_thread},
                   .name = fmt::format("step {}", trace.step),
                   .category = "step",
                   .start = trace.begin - zero_,
                   .end = trace.end - zero_,
                   .arguments = {{"step", trace.step}}});
    const program::Outline& outline = point_.outline.of(trace.rank);
    for (std::uint32_t number = 0; number < trace.spans.size(); ++number) {
      const OutlineOp& op = outline.ops[number];
      const timeline::Span& span = trace.spans[number];
      const Track at = track(trace.rank, op.stream);
      writer_.write({.track = at,
                     .name = name_of(op),
                     .category = program::name(op.place.phase),
                     .start = span.start - zero_,
                     .end = span.end - zero_,
                     .arguments = arguments_of(op, number, point_.mesh, wait_of(trace, number))});
      for (; !ends.empty() && ends.front().op == number; ends = ends.subspan(1)) {
        // The viewer attaches the arrow to the interval that contains the time. The end of an
        // interval is not part of it, so the arrow ends one nanosecond earlier.
        const Nanoseconds last = std::max(span.start, span.end - Nanoseconds{1});
        const bool starts = ends.front().end == FlowEnd::start;
        writer_.write_flow(ends.front().end, ends.front().id, at,
                           (starts ? span.start : last) - zero_);
      }
    }
  }

  [[nodiscard]] std::int64_t process(int rank) const { return first_process_ + rank; }
  [[nodiscard]] Track track(int rank, program::StreamId stream) const {
    return {.process = process(rank), .thread = step_thread + 1 + stream};
  }

  const results::RunData& run_;
  std::string launch_;
  const PointData& point_;
  std::int64_t first_process_;
  std::uint64_t next_flow_;
  TraceWriter& writer_;
  breakdown::TracedSteps steps_;
  std::map<const StepTrace*, const breakdown::TracedStep*> step_of_;
  Nanoseconds zero_;
  std::set<int> broken_, untraced_, unaligned_;
};

}  // namespace

std::string microseconds(Nanoseconds time) {
  constexpr std::uint64_t per_microsecond = 1000;
  const bool is_negative = time.value() < 0;
  const auto magnitude = static_cast<std::uint64_t>(is_negative ? -time.value() : time.value());
  return fmt::format("{}{}.{:03}", is_negative ? "-" : "", magnitude / per_microsecond,
                     magnitude % per_microsecond);
}

TraceExport export_traces(std::span<const results::RunData> runs, std::ostream& out) {
  TraceWriter writer{out};
  TraceExport result;
  std::int64_t next_process = 1;  // not 0, which viewers treat as a special process
  std::uint64_t next_flow = 1;
  for (const results::RunData& run : runs) {
    const std::string launch =
        runs.size() > 1 ? fmt::format("launch {}, ", &run - runs.data() + 1) : "";
    for (const PointData& point : run.points) {
      if (point.status == results::PointStatus::skipped || !point.rows.empty()) continue;
      const std::string name = fmt::format("{}point {} ({} on {})", launch, point.index,
                                           point.workload, base::counted(point.ranks, "rank"));
      const std::string problem = breakdown::missing_traces(point);
      if (!problem.empty()) {
        result.left_out.push_back(fmt::format("{} left out: {}", name, problem));
        continue;
      }
      PointExport exported{run, launch, point, next_process, next_flow, writer};
      exported.run();
      exported.add_notes(name, result.left_out);
      next_process += point.ranks;
      next_flow = exported.next_flow();
    }
  }
  writer.finish();
  result.events = writer.events();
  return result;
}

TraceExport write_trace_file(std::span<const results::RunData> runs,
                             const std::filesystem::path& path, settings::IfExists if_exists) {
  TraceExport result;
  write_output_file("--trace", path, if_exists,
                    [&](std::ostream& out) { result = export_traces(runs, out); });
  return result;
}

}  // namespace isoscale::analysis::traces
