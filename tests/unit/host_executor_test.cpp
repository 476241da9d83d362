// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare.hpp"
#include "executor/host/resources.hpp"
#include "matchers.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor::host {
namespace {

using namespace program;  // NOLINT: the ops

TEST(Cores, AreThoseThatARankIsBoundToOrItsShareOfTheNodeAndOfAQuota) {
  struct Case {
    int bound, on_node, ranks;
    std::optional<double> quota;
    int cores;
  };
  for (const Case& is :
       {Case{1, 64, 8, {}, 1}, Case{8, 64, 8, {}, 8}, Case{4, 64, 8, {}, 4}, Case{64, 64, 8, {}, 8},
        Case{32, 64, 8, {}, 4},  // bound to one of two sockets
        Case{2, 2, 4, {}, 1}, Case{2, 2, 1, {}, 2}, Case{64, 64, 8, 16.0, 2},
        Case{64, 64, 8, 15.9, 1}, Case{64, 64, 1, 2.0, 2}, Case{64, 64, 1, 1.5, 1},
        Case{8, 64, 8, 16.0, 2}, Case{64, 64, 8, 0.5, 1}, Case{4, 64, 8, 1e12, 4}}) {
    EXPECT_EQ(cores_of_rank(is.bound, is.on_node, is.ranks, is.quota), is.cores)
        << is.bound << " of " << is.on_node << ", " << is.ranks << " ranks";
  }
}

TEST(Storage, IsZeroedAndAlignedAndFailureNamesNeedAndFree) {
  const Storage storage = allocate(units::Bytes{10'000});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.get().address) % 4096, 0U);
  for (std::size_t i = 0; i < 10'000; ++i) EXPECT_EQ(storage.get().address[i], std::byte{0});
  EXPECT_FALSE(static_cast<bool>(allocate(units::Bytes{0})));
  EXPECT_THAT(
      [] { std::ignore = allocate(units::Bytes{std::uint64_t{1} << 60}); },
      testing::ThrowsMessage<base::Error>(AllOf(HasSubstr("cannot allocate"), HasSubstr("free"))));
}

TEST(MergedCopy, IsAsFewPiecesAsPossible) {
  StridedCopy copy{.row_bytes = 8,
                   .rows = 3,
                   .batch = 2,
                   .src_row = 8,
                   .src_batch = 24,
                   .dst_row = 8,
                   .dst_batch = 24};
  const auto bytes_and_pieces = [&] {
    const StridedCopy all = merged(copy);
    return std::array{all.row_bytes, all.rows * all.batch};
  };
  EXPECT_THAT(bytes_and_pieces(), ElementsAre(48, 1));
  copy.dst_batch = 30;
  EXPECT_THAT(bytes_and_pieces(), ElementsAre(24, 2));
  copy.src_row = 10;
  EXPECT_THAT(bytes_and_pieces(), ElementsAre(8, 6));
}

program::Op op(program::Payload payload, program::StreamId stream) {
  return {.payload = std::move(payload), .place = {}, .stream = stream};
}

TEST(CommunicationNeeds, AreTheUnionOverAllProgramsInOneOrder) {
  using mesh::Axis;
  const program::Collective over_dp{.axes = Axis::dp}, over_tp{.axes = Axis::tp};
  const program::Exchange up{{{program::Direction::send, Axis::pp, 1, {}}}};
  const program::Exchange from_above{{{program::Direction::receive, Axis::pp, 1, {}}}};
  program::RankProgram first, second;
  first.step().ops = {op(over_dp, 1), op(over_tp, 0), op(over_dp, 1), op(up, 2)};
  second.setup.ops = {op(over_dp, 0)};
  second.step().ops = {op(over_tp, 0), op(from_above, 3)};
  const auto needs =
      communication_needs({.mesh = {}, .programs = {first, second}, .program_of_rank = {}});
  const auto swapped =
      communication_needs({.mesh = {}, .programs = {second, first}, .program_of_rank = {}});
  EXPECT_THAT(needs.collectives,
              ElementsAre(std::pair{mesh::AxisSet{Axis::tp}, program::StreamId{0}},
                          std::pair{mesh::AxisSet{Axis::dp}, program::StreamId{0}},
                          std::pair{mesh::AxisSet{Axis::dp}, program::StreamId{1}}));
  EXPECT_EQ(needs.collectives, swapped.collectives);
  // A receive from above is a send to below, seen by its sender.
  EXPECT_THAT(needs.exchanges, ElementsAre(Pair(Axis::pp, ElementsAre(-1, 1))));
  EXPECT_EQ(needs.exchanges, swapped.exchanges);
}

TEST(HostExecutor, DescribesItself) {
  const auto executor = make_host_executor({});
  const Description& description = executor->describe();
  EXPECT_EQ(description.name, "host");
  EXPECT_THAT(description.detail, HasSubstr("1 thread"));
  EXPECT_THAT(description.precisions,
              UnorderedElementsAre(program::Precision::f32, program::Precision::f64));
  EXPECT_GE(description.cores, 1);
  EXPECT_GT(description.memory_free.value().value(), 0U);
  EXPECT_EQ(description.memory_pool, "");
}

TEST(HostExecutor, RefusesImpossibleOptions) {
  EXPECT_THROW(std::ignore = make_host_executor({.blas_threads = 0}), base::UsageError);
  EXPECT_THROW(std::ignore = make_host_executor({.elements_per_call = 0}), base::UsageError);
  EXPECT_THROW(std::ignore = make_host_executor({.elements_per_call = std::uint64_t{1} << 31}),
               base::UsageError);
}

TEST(Blas, KernelsThatAreOlderThanTheCpuAreSaid) {
  for (const auto& [kernel, vectors, better] :
       {std::tuple{"SkylakeX", Vectors::avx512, ""},
        {"Haswell", Vectors::avx2, ""},
        {"Prescott", Vectors::unknown, ""},
        {"Prescott", Vectors::avx512, "OPENBLAS_CORETYPE=SkylakeX"},
        {"Nehalem", Vectors::avx2, "OPENBLAS_CORETYPE=Haswell"}}) {
    const std::string warning = kernel_warning(kernel, vectors);
    EXPECT_EQ(warning.empty(), std::string{better}.empty()) << kernel;
    EXPECT_THAT(warning, HasSubstr(better));
  }
}

Slice& slice_of(Slice& slice) { return slice; }
Slice& slice_of(Matrix& matrix) { return matrix.slice; }

/// Ops on matrices of 3 x 4 elements.
class OperandsOfOps : public testing::Test {
 protected:
  static constexpr std::uint32_t rows = 3, columns = 4;

  Slice slice(std::uint64_t count, DType type = DType::f32) { return sketch_.buffer(type, count); }
  Matrix matrix() { return {.slice = slice(rows * columns), .row_stride = columns}; }
  void give(Slice& operand) { operand = slice(8); }
  void give(Matrix& operand) { operand = matrix(); }

  /// Expects that the op can be played when it has these operands, but not without any one of them.
  /// Gives the op the operands that it does not have yet.
  template <class Op, class... Member>
  void expect_needed(Op op, Member Op::*... needed) {
    SCOPED_TRACE(name(kind_of(op)));
    if constexpr (requires { op.columns; }) {
      op.rows = rows;
      op.columns = columns;
    }
    const auto give_if_absent = [&](auto member) {
      if (slice_of(op.*member).count == 0) give(op.*member);
    };
    (give_if_absent(needed), ...);
    EXPECT_NO_THROW(prepare(op));
    std::size_t number = 0;
    const auto expect_refused_without = [&](auto member) {
      Op without = op;
      slice_of(without.*member).buffer = no_buffer;
      EXPECT_THROW(prepare(without), base::Error) << "operand " << number;
      slice_of(without.*member) = {};
      EXPECT_THROW(prepare(without), base::Error) << "empty operand " << number;
      ++number;
    };
    (expect_refused_without(needed), ...);
  }

  void prepare(const Payload& op) {
    std::vector<std::byte> storage(1 << 16);
    ArenaPointers arenas{};
    arenas.fill(storage.data());
    const Resolver resolver{sketch_.program(), {}, 0, arenas};
    program::Program section;
    section.ops.push_back({.payload = op});
    static_cast<void>(host::prepare(resolver, section, {{}, {}, {}}, {}));
  }

  Sketch sketch_;
};

TEST_F(OperandsOfOps, AreAllNeeded) {
  Gemm gemm{.m = rows,
            .n = columns,
            .k = 2,
            .a = {.slice = slice(6), .row_stride = 2},
            .b = {.slice = slice(8), .row_stride = columns}};
  expect_needed(gemm, &Gemm::a, &Gemm::b, &Gemm::d);
  gemm.beta = 1;
  expect_needed(gemm, &Gemm::c, &Gemm::d);
  expect_needed(Copy{}, &Copy::src, &Copy::dst);
  expect_needed(Add{}, &Add::a, &Add::b, &Add::dst);
  expect_needed(Cast{.dst = matrix()}, &Cast::src);  // a cast may have a transposed copy alone
  expect_needed(Advise{}, &Advise::slice);

  expect_needed(
      Fill{.shard = {.extents = {1, 1, 8}, .local = {0, 0, 1}, .global = {0, 0, 1}, .base = 0}},
      &Fill::dst);
  expect_needed(Update{}, &Update::weight, &Update::gradient);
  expect_needed(Update{.optimizer = Optimizer::adam, .powers = slice(2)}, &Update::weight,
                &Update::gradient, &Update::moment1, &Update::moment2, &Update::powers);
  Checksum checksum{.sum = slice(2, DType::i64)};
  expect_needed(checksum, &Checksum::src, &Checksum::sum);
  checksum.flip = slice(2, DType::i64);
  expect_needed(checksum, &Checksum::src, &Checksum::sum);

  const Slice inverse = slice(rows);
  expect_needed(Norm{.inverse = inverse}, &Norm::x, &Norm::y, &Norm::inverse);
  expect_needed(Norm{.inverse = inverse}, &Norm::x, &Norm::addend, &Norm::sum, &Norm::y,
                &Norm::inverse);
  expect_needed(NormGradient{.inverse = inverse}, &NormGradient::dy, &NormGradient::s,
                &NormGradient::dx, &NormGradient::inverse);
  expect_needed(Activation{}, &Activation::x, &Activation::y);
  expect_needed(Activation{.kind = ActivationKind::swiglu}, &Activation::x, &Activation::up,
                &Activation::y);
  using Gradient = ActivationGradient;
  expect_needed(Gradient{}, &Gradient::dy, &Gradient::x, &Gradient::dx);
  expect_needed(Gradient{.kind = ActivationKind::swiglu}, &Gradient::dy, &Gradient::x,
                &Gradient::up, &Gradient::dx, &Gradient::dup);
  expect_needed(Softmax{}, &Softmax::x, &Softmax::y);
  expect_needed(SoftmaxGradient{}, &SoftmaxGradient::y, &SoftmaxGradient::dy, &SoftmaxGradient::dx);

  const Slice all = slice(16), values = slice(4), places = slice(4, DType::i32);
  expect_needed(Select{.block = 8, .keep = 2, .src = all, .values = values, .places = places},
                &Select::src, &Select::values, &Select::places);
  expect_needed(Spread{.block = 8, .keep = 2, .values = values, .places = places, .dst = all},
                &Spread::values, &Spread::places, &Spread::dst);
  expect_needed(Rows{.from = {2, 0, 1}}, &Rows::src, &Rows::dst);
}

}  // namespace
}  // namespace isoscale::executor::host
