// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// bench_cuda_costs: what measuring itself costs on a GPU, each as one line in microseconds: a pair
// of events around an op, a mark, events as nodes of a graph, and from a begin event on an idle
// stream to the end of the first op behind it. Also says whether CUDA captures a copy of pageable
// memory. Medians of 9 rounds over 1,000 ops that set four bytes.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/gate_and_progress_words.hpp"
#include "tests/bench/bench.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr int ops = 1000, rounds = 9;

class Costs {
 public:
  Costs() {
    void* pointer = nullptr;
    check(cudaMalloc(&pointer, sizeof(std::uint32_t)));
    word_.reset(pointer);
    check(cudaMallocHost(&pointer, sizeof(std::uint32_t)));
    mark_.reset(pointer);
  }

  void print() {
    const double bare = per_op([&] { work(); });
    fmt::print("an op that sets four bytes: {:.2f} us\n", bare * 1e6);
    print_extra("a pair of events around an op", bare, [&] {
      check(cudaEventRecord(first_.get(), stream_.get()));
      work();
      check(cudaEventRecord(second_.get(), stream_.get()));
    });
    print_extra("a mark", bare, [&] {
      if (write_in_stream(stream_.get(), static_cast<std::uint32_t*>(mark_.get()), 1) != 0) {
        throw CudaError("the driver does not write values in streams");
      }
      work();
    });
    const double of_graph = per_op_of_graph([&] { work(); });
    fmt::print("an op of a graph: {:.2f} us\n", of_graph * 1e6);
    const double with_events = per_op_of_graph([&] {
      check(cudaEventRecordWithFlags(first_.get(), stream_.get(), cudaEventRecordExternal));
      work();
      check(cudaEventRecordWithFlags(second_.get(), stream_.get(), cudaEventRecordExternal));
    });
    fmt::print("two event nodes of a graph: {:.2f} us\n", (with_events - of_graph) * 1e6);
    fmt::print("begin event to the end of the first op, idle stream: {:.2f} us\n",
               first_op() * 1e6);
    fmt::print("a copy of pageable memory in a capture: {}\n", pageable_copy());
  }

 private:
  void work() const {
    check(cudaMemsetAsync(word_.get(), 0, sizeof(std::uint32_t), stream_.get()));
  }

  static double seconds_between(const Event& begin, const Event& end) {
    check(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  /// Median seconds of `play`, between events.
  [[nodiscard]] double timed(const std::function<void()>& play) const {
    play();
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      check(cudaStreamSynchronize(stream_.get()));
      check(cudaEventRecord(begin_.get(), stream_.get()));
      play();
      check(cudaEventRecord(end_.get(), stream_.get()));
      times.push_back(seconds_between(begin_, end_));
    }
    return bench::median(times);
  }

  [[nodiscard]] double per_op(const std::function<void()>& op) const {
    return timed([&] {
             for (int i = 0; i < ops; ++i) op();
           }) /
           ops;
  }

  void print_extra(const char* name, double bare, const std::function<void()>& op) const {
    fmt::print("{}: {:.2f} us\n", name, (per_op(op) - bare) * 1e6);
  }

  [[nodiscard]] double per_op_of_graph(const std::function<void()>& op) const {
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < ops; ++i) op();
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream_.get(), &captured));
    const CapturedGraph graph{captured};
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph.get(), 0));
    const ExecutableGraph executable{made};
    return timed([&] { check(cudaGraphLaunch(executable.get(), stream_.get())); }) / ops;
  }

  [[nodiscard]] double first_op() const {
    return timed([&] { work(); });
  }

  [[nodiscard]] const char* pageable_copy() const {
    std::uint32_t word = 0;
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
    const cudaError_t status =
        cudaMemcpyAsync(word_.get(), &word, sizeof word, cudaMemcpyHostToDevice, stream_.get());
    cudaGraph_t captured = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_.get(), &captured);
    const CapturedGraph graph{captured};
    static_cast<void>(cudaGetLastError());
    return cudaGetErrorName(status != cudaSuccess ? status : ended);
  }

  Stream stream_ = make_stream(Priority::normal);
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
  Event first_ = make_event(Timing::on), second_ = make_event(Timing::on);
  DeviceMemory word_;
  PinnedMemory mark_;
};

}  // namespace
}  // namespace isoscale::executor::cuda

int main() {
  try {
    isoscale::executor::cuda::Costs{}.print();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda_costs: {}\n", error.what());
    return 2;
  }
}
