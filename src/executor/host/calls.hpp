// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "executor/host/layer_calls.hpp"
#include "executor/host/list_calls.hpp"
#include "executor/host/slowing.hpp"
#include "executor/host/waiting.hpp"
#include "executor/host/wide.hpp"
#include "executor/resolver.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"
#include "units/quantity.hpp"

/// Ops of a program with everything looked up: what is left is to call BLAS, MPI or a loop.
namespace isoscale::executor::host {

/// What one thread plays ops with.
struct Player {
  Waiting waiting = Waiting::blocking;
  const std::atomic<bool>* stopped = nullptr;  ///< set when another thread of the session failed
  std::atomic<std::uint32_t> begun{Whereabouts::no_op};  ///< op begun last, for others to look at
  units::Nanoseconds patience{};                         ///< with one exchange; 0 = without end
  std::vector<MPI_Request> requests;                     ///< of the exchange under way
  std::vector<MPI_Status> statuses;
};

/// Element types that the host computes in.
enum class Element : std::uint8_t { f32, f64 };

using CopyCall = StridedCopy;
void run(const CopyCall& call);

/// Strides in elements.
struct GemmCall {
  Element element = Element::f32;
  program::Transpose transpose_a = program::Transpose::no, transpose_b = program::Transpose::no;
  int m = 0, n = 0, k = 0;
  int row_stride_a = 0, row_stride_b = 0, row_stride_d = 0;
  std::uint32_t batch = 1;
  std::uint64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_d = 0;
  double alpha = 1, beta = 0;
  const std::byte *a = nullptr, *b = nullptr;
  std::byte* d = nullptr;
  std::optional<CopyCall> c_to_d;  ///< BLAS knows no C apart from D
};
void run(const GemmCall& call);

/// Strides in elements. For f64, f32 and integers.
struct AddCall {
  program::DType type = program::DType::f32;
  std::size_t rows = 0, columns = 0;
  const std::byte *a = nullptr, *b = nullptr;
  std::byte* dst = nullptr;
  std::size_t a_row = 0, b_row = 0, dst_row = 0;
  double scale = 1;  ///< of b
};
void run(const AddCall& call);

/// For all floating types. Either destination may be absent.
struct CastCall {
  StoredMatrix src, dst, transposed;
  program::CastScale scaling = program::CastScale::fixed;
  double scale = 1, target = 0;
  float* descale = nullptr;  ///< null for a fixed scale
};
void run(const CastCall& call);

/// For all types.
struct FillCall {
  program::DType type = program::DType::f32;
  std::byte* dst = nullptr;
  std::array<std::uint64_t, 3> extents{}, local{}, global{};
  std::uint64_t first = 0;  ///< global index of local element (0, 0, 0) on this rank
  program::FillGrid grid{};
  double scale = 1;  ///< a power of two
  program::FillSource source = program::FillSource::random;
  double value = 0;  ///< of every element when the source is constant
};
void run(const FillCall& call);

/// Whether an Adam update advances its powers: the first of a play that uses them does.
enum class Powers : std::uint8_t { advance, keep };

struct UpdateCall {
  program::Optimizer optimizer = program::Optimizer::sgd;
  Element state = Element::f32;  ///< of master (else weight) and moments
  Element gradient_type = Element::f32, weight_type = Element::f32, powers_type = Element::f64;
  Powers powers_mode = Powers::advance;
  std::size_t count = 0;
  std::byte *weight = nullptr, *master = nullptr;  ///< master may be null
  const std::byte* gradient = nullptr;
  std::byte *moment1 = nullptr, *moment2 = nullptr, *powers = nullptr;  ///< Adam only
  double gradient_scale = 1, rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
};
void run(const UpdateCall& call);

struct Message {
  std::byte* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  int peer = 0;
  int tag = 0;
  MPI_Comm communicator = MPI_COMM_NULL;
};

/// Messages that start together and end together.
struct ExchangeCall {
  std::vector<Message> receives, sends;
};
void run(const ExchangeCall& call, Player& player);

/// One call of one MPI collective.
struct MpiCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  int count = 0;               ///< elements as MPI's manual counts them for this kind
  const void* send = nullptr;  ///< may be MPI_IN_PLACE
  void* receive = nullptr;     ///< may be MPI_IN_PLACE
};

/// A collective: what MPI does not do in place, then its calls, then what is larger than an MPI
/// call can be as messages of its own.
struct CollectiveCall {
  std::optional<CopyCall> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<CopyCall> after;
};
void run(const CollectiveCall& call, Player& player);

// What BLAS and the loops above have no types for is widened, computed in f32 or f64, and rounded
// back once: the reference of executors that have the types. Each call widens anew.

struct EmulatedGemmCall {
  program::Transpose transpose_a = program::Transpose::no, transpose_b = program::Transpose::no;
  program::ComputeMode mode = program::ComputeMode::native;
  double alpha = 1, beta = 0;
  std::vector<StoredMatrix> operands;  ///< a, b, c, d; c is absent when beta is 0
  const float *descale_a = nullptr, *descale_b = nullptr;  ///< null: 1
};
void run(const EmulatedGemmCall& call);

struct EmulatedAddCall {
  std::vector<StoredMatrix> operands;  ///< a, b, dst
  float scale = 1;                     ///< of b
};
void run(const EmulatedAddCall& call);

struct EmulatedUpdateCall {
  UpdateCall wide;  ///< weight and gradient point to what is stored, of the types below
  program::DType weight = program::DType::f32, gradient = program::DType::f32;
};
void run(const EmulatedUpdateCall& call);

/// What is left of a GEMM whose time passes without it: D, of zeros where it would not be added to.
/// Nobody may read what storage held before: it need not be a number. Strides in bytes.
struct ClearCall {
  std::byte* d = nullptr;
  std::size_t rows = 0, row_bytes = 0, batch = 1;
  std::size_t row_stride = 0, batch_stride = 0;
};
void run(const ClearCall& call);

/// Two 64-bit words go to `sum`; see program/fill_and_checksum.hpp. `flip` is null or has two as well.
struct ChecksumCall {
  StoredMatrix src;
  std::byte* sum = nullptr;
  const std::byte* flip = nullptr;
};
void run(const ChecksumCall& call);

/// An op that means nothing here.
struct NoCall {};

struct SlowedCall;
struct StuckCall;

using Call =
    std::variant<GemmCall, CollectiveCall, ExchangeCall, CopyCall, AddCall, CastCall, FillCall,
                 UpdateCall, EmulatedGemmCall, EmulatedAddCall, EmulatedUpdateCall, NormCall,
                 NormGradientCall, ActivationCall, ActivationGradientCall, SoftmaxCall,
                 SoftmaxGradientCall, SelectCall, SpreadCall, RowsCall, ClearCall, ChecksumCall,
                 NoCall, std::unique_ptr<SlowedCall>, std::unique_ptr<StuckCall>>;

/// An op that lasts longer than it has to, on purpose. A call of its own: where nothing is slowed,
/// nothing looks whether it is.
struct SlowedCall {
  Call call;
  Slowing slowing;
};

/// An op that never ends, or throws, when it is played for the third time.
struct StuckCall {
  Call call;
  program::Stuck how = program::Stuck::no;
  int rank = 0;  ///< of the world, for messages
  std::uint32_t plays = 0;
};
/// Whether the op is to be played; does not return in the play that it is stuck in.
[[nodiscard]] bool may_play(StuckCall& call);

}  // namespace isoscale::executor::host
