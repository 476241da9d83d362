// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nvtx3/nvToolsExt.h>

#include <cmath>
#include <thread>

#include "base/warn.hpp"
#include "comm/communicator.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "program/op.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::cuda {
namespace {

/// The number of event queries (each well under 1 us) between polls of NCCL and of the time limit.
constexpr int looks_between_polls = 256;

std::uint32_t passes_of(const Play& what) { return what.trace == Trace::on ? 1 : what.times; }

/// Returns for each stream the first marked op after the op that began last, or the number of ops
/// if there is none.
std::vector<std::uint32_t> next_marked(const PreparedSection& section,
                                       const std::vector<std::uint32_t>& begun) {
  const auto end = static_cast<std::uint32_t>(section.ops.size());
  std::vector<std::uint32_t> next(begun.size(), end);
  for (std::uint32_t i = 0; i < end; ++i) {
    const PreparedOp& op = section.ops[i];
    const bool is_behind = begun[op.stream] == Whereabouts::no_op || i > begun[op.stream];
    if (op.is_marked && is_behind) next[op.stream] = std::min(next[op.stream], i);
  }
  return next;
}

bool communicates(const program::RankProgram& program, std::size_t stream) {
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      if (op.stream == stream && program::communicates(program::kind_of(op.payload))) return true;
    }
  }
  return false;
}

units::Nanoseconds after(cudaEvent_t origin, cudaEvent_t event) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, origin, event));
  return units::Nanoseconds{std::llround(static_cast<double>(milliseconds) * 1e6)};
}

}  // namespace

Range::Range(const char* name) : is_open_(name != nullptr) {
  if (is_open_) nvtxRangePushA(name);
}

Range::~Range() {
  if (is_open_) nvtxRangePop();
}

std::vector<OpRange> ranges_of(const program::Program& section) {
  std::vector<OpRange> ranges;
  ranges.reserve(section.ops.size());
  for (const program::Op& op : section.ops) {
    ranges.push_back(
        {.phase = op.place.phase, .name = program::label(program::kind_of(op.payload), op.place)});
  }
  return ranges;
}

cudaEvent_t EventPool::at(std::size_t index) {
  while (events_.size() <= index) events_.push_back(make_event(timing_));
  return events_[index].get();
}

void StreamPlayer::make_trace_events(std::size_t op_count) {
  for (EventPool* const events : {&begins_, &ends_}) {
    if (op_count > 0) static_cast<void>(events->at(op_count - 1));
  }
}

StreamPlayer::StreamPlayer(const program::RankProgram& program, const PreparedProgram& prepared) {
  const std::size_t count = std::max<std::size_t>(1, program.streams.size());
  for (std::size_t stream = 0; stream < count; ++stream) {
    // Stream 0 always has normal priority: it also computes, and a higher priority cannot move its
    // communication ahead of its own compute ops.
    const bool is_urgent = stream > 0 && communicates(program, stream);
    streams_.push_back(make_stream(is_urgent ? Priority::high : Priority::normal));
  }
  if (std::ranges::any_of(prepared.sections, &PreparedSection::has_marks)) {
    marks_ = Marks{count, main()};
  }
}

void StreamPlayer::issue(const PreparedSection& section, Trace trace, EventMode mode, Gate* gate) {
  const auto record_if_traced = [&](EventPool& events, std::size_t op, cudaStream_t stream) {
    if (trace == Trace::off) return;
    const bool is_captured = mode == EventMode::captured;
    check(cudaEventRecordWithFlags(events.at(op), stream,
                                   is_captured ? cudaEventRecordExternal : cudaEventRecordDefault));
  };
  if (section.has_marks) marks_.clear(section.streams, main());
  const bool has_others =
      std::ranges::any_of(section.streams, [](program::StreamId stream) { return stream != 0; });
  const cudaEvent_t start = joins_.at(0);
  if (has_others) check(cudaEventRecord(start, main()));
  for (const program::StreamId stream : section.streams) {
    if (stream != 0) check(cudaStreamWaitEvent(streams_[stream].get(), start, 0));
  }
  // This NVTX range encloses the ranges of consecutive ops of one phase; each op has its own range.
  std::optional<Range> phase;
  for (std::size_t i = 0; i < section.ops.size(); ++i) {
    const PreparedOp& op = section.ops[i];
    const OpRange* const named = section.ranges.empty() ? nullptr : &section.ranges[i];
    if (named != nullptr && (i == 0 || named->phase != section.ranges[i - 1].phase)) {
      phase.reset();  // closes the previous range before the next one opens
      phase.emplace(std::string{program::name(named->phase)}.c_str());
    }
    const Range range{named == nullptr ? nullptr : named->name.c_str()};
    const cudaStream_t stream = streams_[op.stream].get();
    for (std::uint32_t w = 0; w < op.wait_count; ++w) {
      check(cudaStreamWaitEvent(stream, done_.at(section.waits[op.wait_begin + w]), 0));
    }
    if (op.is_marked) marks_.begins(static_cast<std::uint32_t>(i), op.stream, stream);
    record_if_traced(begins_, i, stream);
    launch(op.call, stream);
    record_if_traced(ends_, i, stream);
    if (op.done != no_event) check(cudaEventRecord(done_.at(op.done), stream));
    if (gate != nullptr) gate->launched();
  }
  for (const program::StreamId stream : section.streams) {
    if (stream == 0) continue;
    const cudaEvent_t drained = joins_.at(1U + stream);
    check(cudaEventRecord(drained, streams_[stream].get()));
    check(cudaStreamWaitEvent(main(), drained, 0));
  }
}

ExecutableGraph StreamPlayer::capture(const PreparedSection& section, Trace trace) {
  // The capture is limited to this thread: the libraries' own threads may make calls that a capture
  // forbids.
  check(cudaStreamBeginCapture(main(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t raw = nullptr;
  try {
    issue(section, trace, EventMode::captured);
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(main(), &raw));
    const CapturedGraph broken{raw};
    static_cast<void>(cudaGetLastError());
    throw;
  }
  check(cudaStreamEndCapture(main(), &raw));
  const CapturedGraph graph{raw};
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), cudaGraphInstantiateFlagUseNodePriority));
  ExecutableGraph result{executable};
  check(cudaGraphUpload(executable, main()));
  check(cudaStreamSynchronize(main()));
  return result;
}

void StreamPlayer::read_spans(std::size_t op_count, cudaEvent_t origin, units::Nanoseconds at,
                              std::vector<timeline::Span>& spans) {
  spans.resize(op_count);
  for (std::size_t i = 0; i < op_count; ++i) {
    spans[i] = {.op = static_cast<std::uint32_t>(i),
                .start = at + after(origin, begins_.at(i)),
                .end = at + after(origin, ends_.at(i))};
  }
}

CudaSession::CudaSession(SessionParts parts) : parts_(std::move(parts)) {}

CudaSession::~CudaSession() {
  // The graphs are destroyed first: communicators cannot be closed while a graph uses them.
  graphs_.clear();
  if (failed_) {
    // Kernels may wait for peers for ever, so the objects that they use must outlive this one.
    if (gate_) gate_->abandon();
    parts_.puts.stop();
    parts_.registrations.abandon();
    parts_.communicators->abort();
    parts_.memory->arenas.abandon();
    parts_.program.scratch.abandon();
    parts_.puts.abandon();
    parts_.barrier.abandon();
    parts_.player.marks().abandon();
    return;
  }
  try {
    parts_.registrations.close();
    if (parts_.keeper != nullptr) {
      *parts_.keeper = std::move(parts_.communicators);
    } else {
      parts_.communicators->close();
    }
  } catch (const base::Error& error) {
    base::warn(fmt::format("isoscale: warning: while a session was closed: {}", error.what()));
  }
}

PlayTime CudaSession::play(const Play& what) {
  if (failed_) throw base::Error("a session whose play has failed cannot play again");
  section_.store(what.section, std::memory_order_relaxed);
  playing_.store(true, std::memory_order_release);
  try {
    const PlayTime time = play_checked(what);
    passes_.fetch_add(passes_of(what), std::memory_order_relaxed);
    playing_.store(false, std::memory_order_release);
    return time;
  } catch (...) {
    if (gate_) gate_->open();
    failed_ = true;
    playing_.store(false, std::memory_order_release);
    throw;
  }
}

PlayTime CudaSession::play_checked(const Play& what) {
  const PreparedSection& prepared = parts_.program.section(what.section);
  const bool is_traced = what.trace == Trace::on;
  // In the first play of a section, libraries load kernels and make connections. A graph's capture
  // may forbid these calls, and loading a kernel may wait for a stream that the gate holds back.
  // Therefore the first play uses neither graph nor gate.
  const bool is_first = !played_.contains(what.section);
  const bool replays = parts_.graph == settings::Graph::on && prepared.can_be_captured &&
                       what.section != program::Section::setup && !is_first;
  const cudaGraphExec_t graph = replays ? graph_of(what.section, what.trace) : nullptr;

  const bool is_step = what.section == program::Section::step;
  const Range range{parts_.nvtx == settings::Nvtx::on && is_step
                        ? fmt::format("step {}", steps_).c_str()
                        : nullptr};
  if (is_step) ++steps_;
  const cudaStream_t stream = parts_.player.main();
  const bool hides = what.launches == Launches::hidden && !is_traced && prepared.can_be_captured;
  if (hides && !gate_) gate_.emplace(stream);
  const bool is_long = graph != nullptr && prepared.ops.size() > Gate::most_graph_ops;
  Gate* const gate = hides && !is_first && !is_long ? &*gate_ : nullptr;
  const units::Nanoseconds before = is_traced ? anchor(stream) : comm::now();
  if (is_traced) parts_.player.make_trace_events(prepared.ops.size());
  if (gate != nullptr) gate->close(stream);
  // The barrier is enqueued behind the gate, so that the play starts at the same time on all GPUs:
  // they leave the barrier together, whereas the hosts open their gates one after another.
  if (hides) parts_.barrier.enter(what.section, stream);
  check(cudaEventRecord(begin_.get(), stream));
  issue(what, prepared, graph, gate);
  check(cudaEventRecord(end_.get(), stream));
  if (gate != nullptr) gate->open();
  wait_for(end_.get(), what.timeout);

  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  units::Nanoseconds begin = before;
  if (is_traced) {
    begin += after(anchors_.front().get(), begin_.get());
    parts_.player.read_spans(prepared.ops.size(), begin_.get(), begin, spans_);
  }
  played_.insert(what.section);
  const units::Nanoseconds elapsed{std::llround(static_cast<double>(milliseconds) * 1e6)};
  return {.begin = begin, .end = begin + elapsed, .is_late = gate != nullptr && gate->was_late()};
}

units::Nanoseconds CudaSession::anchor(cudaStream_t stream) {
  constexpr int attempts = 5;
  units::Nanoseconds at{}, least{};
  auto& [best, spare] = anchors_;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const units::Nanoseconds before = comm::now();
    check(cudaEventRecord(spare.get(), stream));
    wait_for(spare.get(), units::Seconds{});
    const units::Nanoseconds took = comm::now() - before;
    if (attempt > 0 && took >= least) continue;
    // The stream is idle, so the event happened within this time.
    least = took;
    at = before + took / 2;
    std::swap(best, spare);
  }
  return at;
}

void CudaSession::issue(const Play& what, const PreparedSection& section, cudaGraphExec_t graph,
                        Gate* gate) {
  const cudaStream_t stream = parts_.player.main();
  for (std::uint32_t pass = 0; pass < passes_of(what); ++pass) {
    if (section.has_marks) parts_.player.marks().pass(passes_ + pass + 1, stream);
    if (graph != nullptr) {
      check(cudaGraphLaunch(graph, stream));
      if (gate != nullptr) gate->launched();
    } else {
      parts_.player.issue(section, what.trace, EventMode::plain, gate);
    }
  }
}

cudaGraphExec_t CudaSession::graph_of(program::Section section, Trace trace) {
  ExecutableGraph& graph = graphs_[{section, trace}];
  if (!graph) graph = parts_.player.capture(parts_.program.section(section), trace);
  return graph.get();
}

void CudaSession::wait_for(cudaEvent_t event, units::Seconds timeout) const {
  const units::Nanoseconds limit = comm::now() + units::to_nanoseconds(timeout);
  for (int looks = 1;; ++looks) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status);
    static_cast<void>(cudaGetLastError());  // so that no later call reports "not ready"
    if (looks % looks_between_polls == 0) {
      parts_.communicators->poll();
      if (timeout > units::Seconds{} && comm::now() > limit) {
        throw TimedOut(fmt::format("a play did not end within {}", units::format(timeout)));
      }
    }
    // The thread yields but does not sleep: if it woke up late, peers would wait for this rank in
    // the next step.
    std::this_thread::yield();
  }
}

std::optional<Whereabouts> CudaSession::whereabouts() const {
  Whereabouts result{.section = section_.load(std::memory_order_relaxed),
                     .plays = passes_.load(std::memory_order_relaxed),
                     .playing = playing_.load(std::memory_order_acquire)};
  const PreparedSection& section = parts_.program.section(result.section);
  if (!result.playing) return result;
  if (!section.has_marks || !parts_.player.marks()) {
    ++result.plays;
    return result;
  }
  const Marks& marks = parts_.player.marks();
  const auto before = static_cast<std::uint32_t>(result.plays);
  const std::uint32_t passes = marks.last_pass() - before;  // modulo 2^32
  result.begun = marks.begun();
  // `passes` is 0 or, modulo 2^32, negative if no pass of this play has begun. The marks are then
  // those of an earlier play.
  constexpr std::uint32_t negative = std::uint32_t{1} << 31U;
  if (passes == 0 || passes >= negative) {
    std::ranges::fill(result.begun, Whereabouts::no_op);
    ++result.plays;
  } else {
    result.plays += passes;
  }
  result.next = next_marked(section, result.begun);
  return result;
}

std::optional<units::Seconds> CudaSession::estimate(program::Section section) {
  if (!has_estimates() || failed_) return std::nullopt;
  std::optional<units::Seconds> sum;
  for (const PreparedOp& op : parts_.program.section(section).ops) {
    // NCCL has no estimates for sends and receives.
    if (std::holds_alternative<ExchangeCall>(op.call)) return std::nullopt;
    if (std::holds_alternative<PutCall>(op.call)) return std::nullopt;
    const auto* const call = std::get_if<CollectiveCall>(&op.call);
    if (call == nullptr) continue;
    NcclGroup group;
    launch(*call, parts_.player.main());
    const auto time = group.end_estimated();
    if (!time) return std::nullopt;
    sum = units::Seconds{(sum ? sum->value() : 0.0) + time->value()};
  }
  return sum;
}

std::string CudaSession::arithmetic(program::Section section) const {
  std::set<std::string> found;
  for (const PreparedOp& op : parts_.program.section(section).ops) {
    const auto* const call = std::get_if<GemmCall>(&op.call);
    if (call != nullptr) found.insert(arithmetic_of(call->algorithm));
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

void CudaSession::read(const program::Slice& slice, std::span<std::byte> into) {
  check(cudaMemcpy(into.data(), parts_.memory->resolver.address(slice, into.size()), into.size(),
                   cudaMemcpyDefault));
}

void CudaSession::write(const program::Slice& slice, std::span<const std::byte> from) {
  check(cudaMemcpy(parts_.memory->resolver.address(slice, from.size()), from.data(), from.size(),
                   cudaMemcpyDefault));
  // A copy from pageable memory may return before it is done, and the session's streams do not wait
  // for it.
  check(cudaDeviceSynchronize());
}

}  // namespace isoscale::executor::cuda
