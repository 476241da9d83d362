// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// bench_kernels [MIB]: bytes per second of each kernel of the CUDA executor, read and written,
// against a device-to-device copy that moves as many. Operands have MIB MiB each (default 256).
// Kernel and copy run in turn, nine rounds; the ratio is the median of the rounds. All operands
// hold numbers of ordinary size before the first round. The goal is 85% of the copy's rate. Exit 1
// where a kernel stays below it. The fill and the checksum, which compute a hash for each element
// and stand outside of what is timed, have no goal.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/operands.hpp"
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
    }
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
  static Arguments<program::Fill> filling(DType type, std::uint64_t count) {
    Arguments<program::Fill> fill;
    fill.op = {.shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}},
               .key = 1,
               .exponent = -7};
    fill.at(&program::Fill::dst).type = type;
    return fill;
  }
  /// Fills all operands: 2 and 5, which can be adam's second moment and its powers, with about 0.5,
  /// the others with numbers between -1 and 1. Both are such numbers in f32, bf16 and f16 alike.
  void fill_all() const {
    for (std::size_t operand = 0; operand < memory_.size(); ++operand) {
      Arguments<program::Fill> fill = filling(DType::bf16, bytes_ / 2);
      if (operand == 2 || operand == 5) {
        fill.op.source = program::FillSource::constant;
        fill.op.value = 0.5;
      }
      set_one(fill, &program::Fill::dst, operand, DType::bf16);
      check(start(fill, stream_.get()));
    }
  }
  /// An op on matrices of `columns` columns and one type, each in a piece of memory of its own. The
  /// matrices that only some ops of the kind have are added if `with_optional` is true.
  template <class Op>
  [[nodiscard]] Arguments<Op> on_rows(DType type, bool with_optional = false) const {
    Arguments<Op> call;
    call.op.rows = static_cast<std::uint32_t>(count(type) / columns);
    call.op.columns = columns;
    call.type = type;
    std::size_t piece = 0;
    program::for_each_in_table<Op>([&](const auto& operand, std::size_t /*number*/) {
      if constexpr (std::is_same_v<decltype(operand.member), program::Matrix Op::*>) {
        const bool is_in_all = !operand.is_optional && operand.condition == nullptr;
        if (!is_in_all && !with_optional) return;
        (call.op.*operand.member).row_stride = columns;
        set_one(call, operand.member, piece++, type);
      }
    });
    return call;
  }
  template <class Op, class Member>
  void set_one(Arguments<Op>& call, Member Op::*member, std::size_t operand, DType type) const {
    call.at(member) = {static_cast<std::byte*>(at(operand)), type};
  }

  template <class Call>
  void add(std::string name, double operands, const Call& call, bool has_goal = true) {
    rows_.push_back({std::move(name), operands * static_cast<double>(bytes_),
                     [call](cudaStream_t stream) { return start(call, stream); }, has_goal});
  }

  void add_elementwise(DType type) {
    const std::string suffix = " " + std::string{program::name(type)};
    auto sum = on_rows<program::Add>(type);
    add("add" + suffix, 3, sum);
    // Half of each row, and rows that are not aligned.
    sum.op.columns /= 2;
    add("add strided" + suffix, 1.5, sum);
    sum.op.a.row_stride = sum.op.b.row_stride = sum.op.dst.row_stride = columns - 1;
    add("add unaligned" + suffix, 1.5, sum, false);
    using program::Activation, program::ActivationGradient;
    const auto gated = [](auto call) {
      call.op.kind = program::ActivationKind::swiglu;
      return call;
    };
    add("gelu" + suffix, 2, on_rows<Activation>(type));
    add("swiglu" + suffix, 3, gated(on_rows<Activation>(type, true)));
    add("gelu gradient" + suffix, 3, on_rows<ActivationGradient>(type));
    add("swiglu gradient" + suffix, 5, gated(on_rows<ActivationGradient>(type, true)));
    auto fill = filling(type, count(type));
    set_one(fill, &program::Fill::dst, 5, type);
    add("fill" + suffix, 1, fill, false);
    auto checksum = on_rows<program::Checksum>(type);
    set_one(checksum, &program::Checksum::sum, 5, DType::i64);
    add("checksum" + suffix, 1, checksum, false);
  }

  void add_layers(DType type) {
    const std::string suffix = " " + std::string{program::name(type)};
    using program::Norm, program::NormGradient;
    for (const bool has_addend : {false, true}) {
      auto norm = on_rows<Norm>(type, has_addend);
      set_one(norm, &Norm::inverse, 5, DType::f32);
      add((has_addend ? "norm with addend" : "norm") + suffix, has_addend ? 4 : 2, norm);
    }
    auto gradient = on_rows<NormGradient>(type);
    set_one(gradient, &NormGradient::inverse, 5, DType::f32);
    add("norm gradient" + suffix, 3, gradient);
    add("softmax" + suffix, 2, on_rows<program::Softmax>(type));
    add("softmax gradient" + suffix, 3, on_rows<program::SoftmaxGradient>(type));
  }

  void add_casts() {
    using program::Cast;
    const auto cast_to = [this](DType from, DType to) {
      auto cast = on_rows<Cast>(from);
      cast.op.dst.row_stride = columns;
      set_one(cast, &Cast::dst, 1, to);
      return cast;
    };
    auto cast = cast_to(DType::bf16, DType::e4m3);
    add("cast bf16 to e4m3", 1.5, cast);
    set_one(cast, &Cast::transposed, 2, DType::e4m3);
    cast.op.transposed.row_stride = cast.op.rows;
    add("cast and transpose", 2, cast);
    cast.op.scaling = program::CastScale::amax;
    cast.op.target = 448;
    set_one(cast, &Cast::descale, 4, DType::f32);
    cast.largest = static_cast<unsigned*>(at(5));
    add("amax, cast and transpose", 3, cast);
    add("cast f32 to bf16", 1.5, cast_to(DType::f32, DType::bf16));
  }

  void add_updates() {
    using program::Update;
    Arguments<Update> update;
    update.op.weight.count = count(DType::f32);
    set_one(update, &Update::weight, 4, DType::bf16);
    set_one(update, &Update::master, 0, DType::f32);
    set_one(update, &Update::gradient, 3, DType::bf16);
    update.op.rate = 1e-6;
    add("sgd", 3, update);
    update.op.optimizer = program::Optimizer::adam;
    set_one(update, &Update::moment1, 1, DType::f32);
    set_one(update, &Update::moment2, 2, DType::f32);
    set_one(update, &Update::powers, 5, DType::f32);
    update.op.epsilon = 1;
    add("adam", 7, update);
  }

  void add_copies() {
    // The copies are as context parallelism packs: rows of 256 bytes, one in two; and a source that
    // repeats itself.
    constexpr std::size_t row = 256;
    StridedCopy pieces{.src = static_cast<std::byte*>(at(0)),
                       .dst = static_cast<std::byte*>(at(1)),
                       .row_bytes = row,
                       .rows = bytes_ / row / 2,
                       .batch = 1,
                       .src_row = 2 * row,
                       .dst_row = row};
    add("copy of 256-byte rows", 1, pieces);
    pieces.row_bytes = columns;
    pieces.rows = bytes_ / columns;
    pieces.src_row = 0;
    pieces.dst_row = columns;
    rows_.push_back({"copy of one row to many", static_cast<double>(bytes_),
                     [pieces](cudaStream_t stream) { return start(pieces, stream); }, false});
  }

  /// Seconds of the kernel and of a copy of as many bytes, in turn.
  [[nodiscard]] bench::Comparison compare(const Row& row) const {
    constexpr int rounds = 9, warm_up = 3;
    const auto kernel = [&] { check(row.launch(stream_.get())); };
    const auto copy = [&] {
      // A copy of n bytes moves 2 n. It leaves the operands of kernels as they are.
      double left = row.bytes / 2;
      while (left > 0) {
        const std::size_t bytes = std::min(bytes_, static_cast<std::size_t>(left));
        check(cudaMemcpyAsync(at(copied), at(copied + 1), bytes, cudaMemcpyDeviceToDevice,
                              stream_.get()));
        left -= static_cast<double>(bytes);
      }
    };
    fill_all();
    for (int i = 0; i < warm_up; ++i) {
      kernel();
      copy();
    }
    return bench::compare(
        rounds, [&] { return seconds_of(kernel); }, [&] { return seconds_of(copy); });
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
  static constexpr std::size_t copied = 6;  ///< this and the next are for copies, not for kernels
  std::array<DeviceMemory, copied + 2> memory_;
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
