// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cmath>

#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/session.hpp"
#include "program/op.hpp"

namespace isoscale::executor::cuda {
namespace {

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

void StreamPlayer::record(cudaEvent_t event, cudaStream_t stream, EventMode mode) const {
  check(cudaEventRecordWithFlags(
      event, stream,
      mode == EventMode::captured ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void StreamPlayer::issue(const PreparedSection& section, Trace trace, EventMode mode, Gate* gate) {
  const bool traced = trace == Trace::on;
  if (section.has_marks) marks_.clear(section.streams, main());
  const cudaEvent_t start = joins_.at(0);
  check(cudaEventRecord(start, main()));
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
    if (traced) record(begins_.at(i), stream, mode);
    launch(op.call, stream);
    if (traced) record(ends_.at(i), stream, mode);
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

}  // namespace isoscale::executor::cuda
