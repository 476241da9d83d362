// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Compares has_kernel() with the starts of the shipped kernels, for all types of all ops.

#include "tests/cuda/kernel_shim/shipped.hpp"

namespace isoscale::kernel_shim {
namespace {

using namespace program;  // NOLINT: the ops

using executor::all_types;

/// Calls of one op, with memory for all of its operands; the types are those of the test.
template <class Op>
class TypedCalls {
 public:
  explicit TypedCalls(const Op& op) {
    call.op = op;
    for (executor::OperandAt& at : call.operands) at.data = memory();
    if constexpr (requires { call.largest; }) call.largest = reinterpret_cast<unsigned*>(memory());
    if constexpr (requires { call.from; }) call.from = reinterpret_cast<std::uint32_t*>(memory());
  }

  /// Starts the op with operands of one type each, and of all these types.
  void expect_for_common_types() {
    for (const DType type : all_types) {
      call.type = type;
      for (executor::OperandAt& at : call.operands) at.type = type;
      expect_what_the_start_says();
    }
  }

  /// Starts the op with each combination of types of these operands.
  template <class... Member>
  void expect_for_all_types(Member... members) {
    const std::array operands{&call.at(members)...};
    std::size_t combinations = 1;
    for (std::size_t i = 0; i < operands.size(); ++i) combinations *= all_types.size();
    for (std::size_t i = 0; i < combinations; ++i) {
      std::size_t rest = i;
      for (executor::OperandAt* const operand : operands) {
        operand->type = all_types[rest % all_types.size()];
        rest /= all_types.size();
      }
      expect_what_the_start_says();
    }
  }

  executor::Arguments<Op> call;
  int started = 0;  ///< calls that have a kernel

 private:
  std::byte* memory() { return one_.take_reachable(DType::f64, 8).kernel; }

  void expect_what_the_start_says() {
    const cudaError_t outcome = executor::cuda::start(call, one_.stream());
    const bool starts = outcome != cudaErrorNotSupported;
    started += starts ? 1 : 0;
    ASSERT_EQ(executor::cuda::has_kernel(call), starts)
        << name(kind_of(call.op)) << " of " << name(call.type) << ", operands of " << types();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  std::string types() const {
    std::string text;
    for (const executor::OperandAt& at : call.operands) text += std::string{name(at.type)} + " ";
    return text;
  }

  Case one_{1};
};

template <class Op>
int started(const Op& op) {
  TypedCalls<Op> calls{op};
  calls.expect_for_common_types();
  return calls.started;
}

TEST(ShippedKernels, ExistForTheTypesThatAreSaid) {
  constexpr Matrix one{.slice = {.buffer = 0, .count = 1}, .row_stride = 1};
  const auto alone = [](auto op) {
    op.rows = op.columns = 1;
    return op;
  };
  const Fill fill{.dst = one.slice,
                  .shard = {.extents = {1, 1, 1}, .local = {0, 0, 1}, .global = {0, 0, 1}}};
  EXPECT_EQ(started(fill), 10);
  EXPECT_EQ(started(alone(Checksum{})), 10);
  EXPECT_EQ(started(alone(program::Add{})), 8);  // not of fp8
  EXPECT_EQ(started(alone(Norm{})), 4);
  EXPECT_EQ(started(alone(NormGradient{})), 4);
  for (const ActivationKind kind : {ActivationKind::gelu, ActivationKind::swiglu}) {
    EXPECT_EQ(started(alone(Activation{.kind = kind})), 4);
    EXPECT_EQ(started(alone(ActivationGradient{.kind = kind})), 4);
  }
  EXPECT_EQ(started(alone(Softmax{})), 4);
  EXPECT_EQ(started(alone(SoftmaxGradient{})), 4);
  EXPECT_EQ(started(alone(Rows{})), 4);
  for (const std::uint32_t block : {1U, executor::cuda::most_per_list_block + 1}) {
    const int types = block == 1 ? 4 : 0;
    EXPECT_EQ(started(Select{.block = block, .keep = 1, .src = one.slice}), types);
    EXPECT_EQ(started(Spread{.block = block, .keep = 1, .dst = one.slice}), types);
  }
}

TEST(ShippedKernels, ExistForTheTypesOfCastsThatAreSaid) {
  using program::Cast;
  const Cast one{.rows = 1, .columns = 1};
  TypedCalls<Cast> both{one}, plain{one}, turned{one};
  both.expect_for_all_types(&Cast::src, &Cast::dst, &Cast::transposed);
  plain.call.at(&Cast::transposed).data = nullptr;
  plain.expect_for_all_types(&Cast::src, &Cast::dst);
  turned.call.at(&Cast::dst).data = nullptr;
  turned.expect_for_all_types(&Cast::src, &Cast::transposed);
  // Both destinations are of one type.
  EXPECT_EQ((std::array{both.started, plain.started, turned.started}), (std::array{24, 24, 24}));
}

TEST(ShippedKernels, ExistForTheTypesOfUpdatesThatAreSaid) {
  using program::Update;
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
    const Update one{.optimizer = optimizer, .weight = {.buffer = 0, .count = 1}};
    TypedCalls<Update> mastered{one}, alone{one};
    mastered.expect_for_all_types(&Update::gradient, &Update::weight, &Update::master,
                                  &Update::powers);
    EXPECT_EQ(mastered.started, 1 + 3 * 3);  // all f64; else a state of f32
    alone.call.at(&Update::master).data = nullptr;
    alone.expect_for_all_types(&Update::gradient, &Update::weight, &Update::powers);
    EXPECT_EQ(alone.started, 1 + 3);
  }
}

}  // namespace
}  // namespace isoscale::kernel_shim
