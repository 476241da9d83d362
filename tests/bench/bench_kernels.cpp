// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// bench_kernels [MIB]: bytes per second of each kernel of the CUDA executor, read and written,
// against a device-to-device copy that moves as many. Operands have MIB MiB each (default 256).
// Kernel and copy run in turn, nine rounds; the ratio is the median of the rounds. The goal is 85%
// of the copy's rate. Exit 1 where a kernel stays below it. The fill and the checksum, which
// compute a hash for each element and stand outside of what is timed, have no goal.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/element_kernels.hpp"
#include "executor/cuda/kernels/layer_kernels.hpp"
#include "executor/cuda/kernels/list_kernels.hpp"
#include "tests/bench/bench.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::DType;

constexpr double goal = 0.85;
constexpr std::uint64_t columns = 4096;

/// One kernel and how many bytes of its operands it reads and writes.
struct Row {
  std::string name;
  double bytes = 0;
  std::function<cudaError_t(cudaStream_t)> launch;
  bool has_goal = true;
};

class Bench {
 public:
  explicit Bench(std::size_t bytes) : bytes_(bytes) {
    for (DeviceMemory& memory : memory_) {
      void* pointer = nullptr;
      check(cudaMalloc(&pointer, bytes));
      memory.reset(pointer);
      // Numbers between -1 and 1 in f32, bf16 and f16 alike.
      check(start(FillCall{.type = DType::bf16,
                           .dst = pointer,
                           .extents = {1, 1, bytes / 2},
                           .local = {0, 0, 1},
                           .global = {0, 0, 1},
                           .grid = {.origin = program::fill_origin(1)},
                           .scale = program::power_of_two(-7)},
                  stream_.get()));
    }
    check(cudaStreamSynchronize(stream_.get()));
  }

  void add_rows() {
    for (const DType type : {DType::bf16, DType::f32}) {
      add_elementwise(type);
      add_layers(type);
    }
    add_casts();
    add_updates();
    add_copies();
  }

  /// Prints a line a kernel; true if all reach the goal.
  [[nodiscard]] bool run() const {
    bool all_reach = true;
    fmt::print("{:<28}{:>12}{:>14}{:>10}\n", "kernel", "GB/s", "copy GB/s", "ratio");
    for (const Row& row : rows_) {
      const bench::Comparison times = compare(row);
      const double ratio = 1 / times.ratio;
      const bool reaches = !row.has_goal || ratio >= goal;
      all_reach = all_reach && reaches;
      fmt::print("{:<28}{:>12.0f}{:>14.0f}{:>9.1f}%{}\n", row.name, row.bytes / times.a * 1e-9,
                 row.bytes / times.b * 1e-9, ratio * 100, reaches ? "" : "  below the goal");
      std::fflush(stdout);
    }
    return all_reach;
  }

 private:
  [[nodiscard]] void* at(std::size_t operand) const { return memory_.at(operand).get(); }
  [[nodiscard]] std::uint64_t count(DType type) const {
    return bytes_ / program::element_size(type);
  }
  [[nodiscard]] MatrixAt matrix(std::size_t operand) const { return {at(operand), columns, 0}; }

  template <class Call>
  void add(std::string name, double operands, const Call& call, bool has_goal = true) {
    rows_.push_back({std::move(name), operands * static_cast<double>(bytes_),
                     [call](cudaStream_t stream) { return start(call, stream); }, has_goal});
  }

  void add_elementwise(DType type) {
    const std::uint64_t rows = count(type) / columns;
    const std::string suffix = " " + std::string{program::name(type)};
    AddCall sum{type, rows, columns, at(0), at(1), at(2), columns, columns, columns};
    add("add" + suffix, 3, sum);
    // Half of each row, and rows that are not aligned.
    sum.columns /= 2;
    add("add strided" + suffix, 1.5, sum);
    sum.a_row = sum.b_row = sum.dst_row = columns - 1;
    add("add unaligned" + suffix, 1.5, sum, false);
    ActivationCall activation{.type = type, .rows = rows, .columns = columns};
    activation.x = matrix(0);
    activation.y = matrix(2);
    add("gelu" + suffix, 2, activation);
    activation.kind = program::ActivationKind::swiglu;
    activation.up = matrix(1);
    add("swiglu" + suffix, 3, activation);
    ActivationGradientCall gradient{.type = type, .rows = rows, .columns = columns};
    gradient.dy = matrix(0);
    gradient.x = matrix(1);
    gradient.dx = matrix(3);
    add("gelu gradient" + suffix, 3, gradient);
    gradient.kind = program::ActivationKind::swiglu;
    gradient.up = matrix(2);
    gradient.dup = matrix(4);
    add("swiglu gradient" + suffix, 5, gradient);
    add("fill" + suffix, 1,
        FillCall{.type = type,
                 .dst = at(5),
                 .extents = {1, 1, count(type)},
                 .local = {0, 0, 1},
                 .global = {0, 0, 1},
                 .scale = program::power_of_two(-7)},
        false);
    add("checksum" + suffix, 1,
        ChecksumCall{.type = type,
                     .rows = rows,
                     .columns = columns,
                     .src = at(0),
                     .row_stride = columns,
                     .sum = at(5)},
        false);
  }

  void add_layers(DType type) {
    const std::uint64_t rows = count(type) / columns;
    const std::string suffix = " " + std::string{program::name(type)};
    NormCall norm{.type = type, .rows = rows, .columns = columns};
    norm.x = matrix(0);
    norm.y = matrix(1);
    norm.inverse = at(5);
    add("norm" + suffix, 2, norm);
    norm.addend = matrix(2);
    norm.sum = matrix(3);
    add("norm with addend" + suffix, 4, norm);
    NormGradientCall gradient{.type = type, .rows = rows, .columns = columns};
    gradient.dy = matrix(0);
    gradient.s = matrix(1);
    gradient.dx = matrix(2);
    gradient.inverse = at(5);
    add("norm gradient" + suffix, 3, gradient);
    SoftmaxCall softmax{.type = type, .rows = rows, .columns = columns};
    softmax.x = matrix(0);
    softmax.y = matrix(1);
    add("softmax" + suffix, 2, softmax);
    SoftmaxGradientCall back{.type = type, .rows = rows, .columns = columns};
    back.y = matrix(0);
    back.dy = matrix(1);
    back.dx = matrix(2);
    add("softmax gradient" + suffix, 3, back);
  }

  void add_casts() {
    const std::uint64_t rows = count(DType::bf16) / columns;
    CastCall cast{.from = DType::bf16, .to = DType::e4m3, .rows = rows, .columns = columns};
    cast.src = at(0);
    cast.dst = at(1);
    cast.src_row = cast.dst_row = columns;
    cast.transposed_row = rows;
    add("cast bf16 to e4m3", 1.5, cast);
    cast.transposed = at(2);
    add("cast and transpose", 2, cast);
    cast.scaling = program::CastScale::amax;
    cast.target = 448;
    cast.descale = static_cast<float*>(at(4));
    cast.largest = static_cast<unsigned*>(at(5));
    add("amax, cast and transpose", 3, cast);
    CastCall narrow{.from = DType::f32, .to = DType::bf16, .columns = columns};
    narrow.rows = count(DType::f32) / columns;
    narrow.src = at(0);
    narrow.dst = at(1);
    narrow.src_row = narrow.dst_row = columns;
    add("cast f32 to bf16", 1.5, narrow);
  }

  void add_updates() {
    UpdateCall update{.weight_type = DType::bf16, .count = count(DType::f32)};
    update.gradient_type = DType::bf16;
    update.weight = at(4);
    update.master = at(0);
    update.gradient = at(3);
    update.rate = 1e-6;
    add("sgd", 3, update);
    update.optimizer = program::Optimizer::adam;
    update.moment1 = at(1);
    update.moment2 = at(2);
    update.powers = at(5);
    update.epsilon = 1;
    add("adam", 7, update);
  }

  void add_copies() {
    // As context parallelism packs: rows of 256 bytes, one in two; and a source that repeats
    // itself.
    constexpr std::size_t row = 256;
    StridedCopy pieces{.src = static_cast<std::byte*>(at(0)),
                       .dst = static_cast<std::byte*>(at(1)),
                       .row_bytes = row,
                       .rows = bytes_ / row / 2,
                       .batch = 1,
                       .src_row = 2 * row,
                       .dst_row = row};
    add("copy of 256-byte rows", 1, CopyCall{pieces});
    pieces.row_bytes = columns;
    pieces.rows = bytes_ / columns;
    pieces.src_row = 0;
    pieces.dst_row = columns;
    rows_.push_back({"copy of one row to many", static_cast<double>(bytes_),
                     [pieces](cudaStream_t stream) { return start(CopyCall{pieces}, stream); },
                     false});
  }

  /// Seconds of the kernel and of a copy of as many bytes, in turn.
  [[nodiscard]] bench::Comparison compare(const Row& row) const {
    constexpr int rounds = 9, warm_up = 3;
    const auto kernel = [&] { check(row.launch(stream_.get())); };
    const auto copy = [&] {
      // A copy of n bytes moves 2 n; those of several operands follow each other.
      double left = row.bytes / 2;
      for (std::size_t operand = 0; left > 0; operand = (operand + 2) % memory_.size()) {
        const std::size_t bytes = std::min(bytes_, static_cast<std::size_t>(left));
        check(cudaMemcpyAsync(at(operand), at(operand + 1), bytes, cudaMemcpyDeviceToDevice,
                              stream_.get()));
        left -= static_cast<double>(bytes);
      }
    };
    for (int i = 0; i < warm_up; ++i) {
      kernel();
      copy();
    }
    std::vector<double> of_kernel, of_copy, ratios;
    for (int round = 0; round < rounds; ++round) {
      of_kernel.push_back(seconds_of(kernel));
      of_copy.push_back(seconds_of(copy));
      ratios.push_back(of_kernel.back() / of_copy.back());
    }
    return {bench::median(of_kernel), bench::median(of_copy), bench::median(ratios)};
  }

  /// Seconds of one call among as many as take some milliseconds.
  template <class Work>
  [[nodiscard]] double seconds_of(const Work& work) const {
    constexpr int calls = 20;
    constexpr double per_second = 1e-3;
    check(cudaEventRecord(begin_.get(), stream_.get()));
    for (int i = 0; i < calls; ++i) work();
    check(cudaEventRecord(end_.get(), stream_.get()));
    check(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return static_cast<double>(milliseconds) * per_second / calls;
  }

  std::size_t bytes_;
  Stream stream_ = make_stream(Priority::normal);
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
  std::array<DeviceMemory, 6> memory_;
  std::vector<Row> rows_;
};

int run(int argc, char** argv) {
  constexpr int default_mib = 256;
  Bench bench{static_cast<std::size_t>(bench::argument(argc, argv, 1, default_mib)) << 20U};
  bench.add_rows();
  return bench.run() ? 0 : 1;
}

}  // namespace
}  // namespace isoscale::executor::cuda

int main(int argc, char** argv) {
  try {
    return isoscale::executor::cuda::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_kernels: {}\n", error.what());
    return 2;
  }
}
