// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Streams, events and graphs of the CUDA runtime.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cuda/standin.hpp"

namespace isoscale::standin {

namespace {

/// Makes what a handle of CUDA points to.
template <class Handle>
auto& make(Handle* handle, int& alive) {
  *handle = std::make_unique<std::remove_pointer_t<Handle>>().release();
  ++alive;
  return **handle;
}
template <class Handle>
cudaError_t drop(Handle handle, int& alive) {
  const std::unique_ptr<std::remove_pointer_t<Handle>> owned{handle};
  --alive;
  return cudaSuccess;
}

}  // namespace

cudaError_t outcome(cudaError_t status) {
  if (status != cudaSuccess && status != cudaErrorNotReady) machine().last = status;
  return status;
}

CUstream_st& stream_of(cudaStream_t stream) {
  static CUstream_st default_stream;
  return stream == nullptr ? default_stream : *stream;
}

cudaError_t synchronous_call_status() {
  if (machine().sticky != cudaSuccess) return outcome(machine().sticky);
  return outcome(machine().captures > 0 ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

/// Lets the machine work until it has failed or `is_done`.
template <class IsDone>
static cudaError_t work_until(const IsDone& is_done) {
  while (!is_done()) {
    machine().advance();
    if (machine().sticky != cudaSuccess) return machine().sticky;
    std::this_thread::yield();
  }
  return cudaSuccess;
}

cudaError_t wait_for(const ItemPointer& item) {
  const auto status = work_until([&] { return item == nullptr || item->done; });
  if (status != cudaSuccess) return status;
  if (item != nullptr) machine().host_time = std::max(machine().host_time, item->end);
  return cudaSuccess;
}

cudaError_t drain() {
  return work_until([] { return machine().queue.size() == 0; });
}

namespace {

/// The GPU's clock, ns.
std::int64_t gpu_clock() {
  if (machine().settings.matmul_cost) return machine().skew;
  if (machine().settings.launch_time > 0) return machine().gpu_time;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() + machine().skew;
}

/// A launch waits while the queue of launches is full.
void wait_for_queue() {
  const std::size_t most = machine().settings.launch_queue;
  static_cast<void>(work_until([most] { return machine().queue.size() < most; }));
}

/// Models the time of a launch on the host, which waits while the queue is full.
void pay_for_launch() {
  const Settings& settings = machine().settings;
  for (const auto& look : machine().looks) look();
  wait_for_queue();
  machine().host_time += settings.launch_time;
}

std::int64_t time_of(const Work& work) {
  return work.takes_time() ? machine().settings.kernel_time : 0;
}

}  // namespace

void submit(cudaStream_t handle, WorkPointer work) {
  CUstream_st& stream = stream_of(handle);
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back({std::move(work), stream.nodes_before});
    stream.nodes_before = {stream.capture->nodes.size() - 1};
    return;
  }
  if (work->takes_time()) pay_for_launch();
  const std::int64_t takes = time_of(*work);
  work->issued();
  stream.before = {machine().queue.add(std::move(work), stream.before, takes)};
}

void submit(cudaStream_t handle, std::function<void()> action) {
  const std::size_t kernel = action.target_type().hash_code();
  const bool is_loaded = !machine().settings.loads_lazily || machine().loaded.contains(kernel);
  if (!is_loaded && stream_of(handle).capture == nullptr) {
    static_cast<void>(drain());
    machine().loaded.insert(kernel);
  }
  submit(handle, std::make_shared<Task>(std::move(action)));
}

namespace {

/// Notes the time when the work before it on its stream is done.
void record(CUevent_st& event, CUstream_st& stream) {
  auto reached = std::make_shared<std::int64_t>(0);
  auto task = std::make_shared<Task>([reached] { *reached = gpu_clock(); });
  event.latest = machine().queue.add(std::move(task), stream.before);
  stream.before = {event.latest};
  event.reached = std::move(reached);
  event.capture = nullptr;
}

/// A record that is a node of a graph: each replay is a record of its own.
class ExternalRecord final : public Work {
 public:
  explicit ExternalRecord(CUevent_st& event) : event_(event) {}
  void issued() override {
    reached_ = std::make_shared<std::int64_t>(0);
    event_.latest = std::make_shared<Item>();
    event_.reached = reached_;
    event_.capture = nullptr;
    item_ = event_.latest;
  }
  bool run() override {
    *reached_ = gpu_clock();
    item_->done = true;
    return true;
  }
  [[nodiscard]] WorkPointer again() const override {
    return std::make_shared<ExternalRecord>(event_);
  }
  [[nodiscard]] bool takes_time() const override { return false; }

 private:
  CUevent_st& event_;
  ItemPointer item_;
  std::shared_ptr<std::int64_t> reached_;
};

void unite(std::vector<std::size_t>& into, const std::vector<std::size_t>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

/// Returns whether the capture's origin has waited for every stream of the capture.
bool is_joined(const CUgraph_st& graph) {
  std::set<std::size_t> reached;
  std::vector<std::size_t> open = graph.origin->nodes_before;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (reached.insert(node).second) unite(open, graph.nodes[node].before);
  }
  return std::ranges::all_of(graph.streams, [&](const CUstream_st* stream) {
    return std::ranges::all_of(stream->nodes_before,
                               [&](std::size_t node) { return reached.contains(node); });
  });
}

cudaError_t wait_in_capture(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture == nullptr) return cudaErrorStreamCaptureIsolation;
  if (stream.capture != nullptr && stream.capture != event.capture) {
    return cudaErrorStreamCaptureMerge;
  }
  if (machine().captures == 0) return cudaErrorInvalidValue;  // its capture has ended
  stream.capture = event.capture;
  event.capture->streams.insert(&stream);
  unite(stream.nodes_before, event.nodes_before);
  return cudaSuccess;
}

}  // namespace
}  // namespace isoscale::standin

using namespace isoscale::standin;

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags != cudaStreamNonBlocking || priority > 0 || priority < -5) {
    return outcome(cudaErrorInvalidValue);
  }
  make(stream, machine().alive.streams);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream->capture != nullptr) return outcome(cudaErrorStreamCaptureUnsupported);
  return drop(stream, machine().alive.streams);  // work under way goes on
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const auto status = synchronous_call_status(); status != cudaSuccess) return status;
  for (const ItemPointer& item : stream_of(stream).before) {
    if (const cudaError_t status = wait_for(item); status != cudaSuccess) return outcome(status);
  }
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned /*flags*/) {
  CUstream_st& stream = stream_of(handle);
  if (stream.capture != nullptr || event->capture != nullptr) {
    return outcome(wait_in_capture(stream, *event));
  }
  if (event->latest != nullptr) stream.before.push_back(event->latest);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  make(event, machine().alive.events).is_timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return drop(event, machine().alive.events); }

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  if (machine().sticky != cudaSuccess) return outcome(machine().sticky);
  CUstream_st& stream = stream_of(handle);
  if (stream.capture == nullptr) {
    if (flags != cudaEventRecordDefault) return outcome(cudaErrorIllegalState);
    record(*event, stream);
  } else if (flags == cudaEventRecordExternal) {
    submit(handle, std::make_shared<ExternalRecord>(*event));
  } else {
    event->capture = stream.capture;
    event->nodes_before = stream.nodes_before;
  }
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->capture != nullptr) return outcome(cudaErrorCapturedEvent);
  machine().advance();
  if (machine().sticky != cudaSuccess) return outcome(machine().sticky);
  if (event->latest == nullptr) return cudaSuccess;
  if (!event->latest->done) return cudaErrorNotReady;
  return wait_for(event->latest);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->capture != nullptr) return outcome(cudaErrorCapturedEvent);
  return outcome(wait_for(event->latest));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const CUevent_st* event : {start, end}) {
    if (event->capture != nullptr) return outcome(cudaErrorCapturedEvent);
    if (!event->is_timed || event->latest == nullptr) {
      return outcome(cudaErrorInvalidResourceHandle);
    }
    if (!event->latest->done) return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>(static_cast<double>(*end->reached - *start->reached) * 1e-6);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr) return outcome(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr || mode != cudaStreamCaptureModeThreadLocal) {
    return outcome(cudaErrorIllegalState);
  }
  CUgraph_st& graph = make(&stream->capture, machine().alive.graphs);
  graph.origin = stream;
  graph.streams = {stream};
  stream->nodes_before.clear();
  ++machine().captures;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* result) {
  *result = nullptr;
  CUgraph_st* const graph = stream->capture;
  if (graph == nullptr || graph->origin != stream) return outcome(cudaErrorIllegalState);
  const bool joined = is_joined(*graph);
  for (CUstream_st* const one : graph->streams) {
    one->capture = nullptr;
    one->nodes_before.clear();
  }
  --machine().captures;
  if (!joined) {
    drop(graph, machine().alive.graphs);
    return outcome(cudaErrorStreamCaptureUnjoined);
  }
  *result = graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  CUgraphExec_st& made = make(executable, machine().alive.executables);
  for (const CUgraph_st::Node& node : graph->nodes) {
    made.nodes.push_back({node.work->again(), node.before});
  }
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t /*executable*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  CUstream_st& stream = stream_of(handle);
  ++machine().graph_launches;
  pay_for_launch();
  std::vector<ItemPointer> first = stream.before, items;
  if (executable->last != nullptr) first.push_back(executable->last);
  for (const CUgraph_st::Node& node : executable->nodes) {
    wait_for_queue();
    std::vector<ItemPointer> before = first;
    for (const std::size_t other : node.before) before.push_back(items[other]);
    WorkPointer work = node.work->again();
    work->issued();
    const std::int64_t takes = time_of(*work);
    items.push_back(machine().queue.add(std::move(work), before, takes));
  }
  items.insert(items.end(), first.begin(), first.end());
  executable->last = machine().queue.add(std::make_shared<Task>([] {}), items);
  stream.before = {executable->last};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return drop(graph, machine().alive.graphs); }

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return drop(executable, machine().alive.executables);
}
