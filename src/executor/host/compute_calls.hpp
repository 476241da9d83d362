// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/resolver.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

/// Calls that compute or copy, with everything looked up: run() calls BLAS or a loop.
namespace isoscale::executor::host {

/// A stored matrix, or `batch` of them; strides in elements. Data is null if there is none.
struct StoredMatrix {
  program::DType type = program::DType::f32;
  std::byte* data = nullptr;
  std::size_t rows = 0, columns = 0, batch = 1;
  std::size_t row_stride = 0, batch_stride = 0;
};

/// Element types that the host computes in.
enum class Element : std::uint8_t { f32, f64 };

using CopyCall = StridedCopy;
void run(const CopyCall& call);

/// A call for program::Gemm. Strides in elements.
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
  std::optional<CopyCall> c_to_d;  ///< BLAS has no C that is not D
};
void run(const GemmCall& call);

/// A call for program::Add, for f64, f32 and integers. Strides in elements.
struct AddCall {
  program::DType type = program::DType::f32;
  std::size_t rows = 0, columns = 0;
  const std::byte *a = nullptr, *b = nullptr;
  std::byte* dst = nullptr;
  std::size_t a_row = 0, b_row = 0, dst_row = 0;
  double scale = 1;  ///< of b
};
void run(const AddCall& call);

/// A call for program::Cast between any floating types, with a fixed scale.
struct CastCall {
  StoredMatrix src, dst;
  double scale = 1;
};
void run(const CastCall& call);
/// Converts a row of any floating type to f64.
void widen_row(program::DType type, const std::byte* from, double* to, std::size_t count);
/// Rounds a row to `type` once, to nearest even; fp8 saturates.
void narrow_row(const double* from, program::DType type, std::byte* to, std::size_t count);

/// A call for program::Fill, for elements of any type.
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

/// Tells if an Adam update advances its powers: the first update of a play that uses them does.
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

// Norms, activations, softmax and lists are in f64 or f32. The data of a missing matrix is null.

struct NormCall {
  StoredMatrix x, addend, sum, y;
  std::byte* inverse = nullptr;  ///< f64 if the rows are f64, else f32
  double epsilon = 0;
};
void run(const NormCall& call);

struct NormGradientCall {
  StoredMatrix dy, s, addend, dx;
  const std::byte* inverse = nullptr;
};
void run(const NormGradientCall& call);

struct ActivationCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  StoredMatrix x, up, y;
};
void run(const ActivationCall& call);

struct ActivationGradientCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  StoredMatrix dy, x, up, dx, dup;
};
void run(const ActivationGradientCall& call);

struct SoftmaxCall {
  StoredMatrix x, y;
};
void run(const SoftmaxCall& call);

struct SoftmaxGradientCall {
  StoredMatrix y, dy, dx;
};
void run(const SoftmaxGradientCall& call);

struct SelectCall {
  program::DType type = program::DType::f32;
  std::size_t count = 0, block = 0, keep = 0;
  std::byte *src = nullptr, *values = nullptr;
  std::int32_t* places = nullptr;
};
void run(const SelectCall& call);

struct SpreadCall {
  program::DType type = program::DType::f32;
  std::size_t count = 0, block = 0, keep = 0, parts = 1;
  const std::byte* values = nullptr;
  const std::int32_t* places = nullptr;
  std::byte* dst = nullptr;
};
void run(const SpreadCall& call);

/// A call for program::Rows. Strides in elements.
struct RowsCall {
  program::DType type = program::DType::f32;
  std::size_t columns = 0, each = 1;
  double scale = 1;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t src_row = 0, dst_row = 0;
  std::vector<std::uint32_t> from{};  ///< row numbers: `each` per row of dst
};
void run(const RowsCall& call);

/// Sets D of a GEMM to 0. Used if a delay replaces a GEMM that would not add to D: later ops must
/// not read what storage held before, which need not be a number. Strides in bytes.
struct ClearCall {
  std::byte* d = nullptr;
  std::size_t rows = 0, row_bytes = 0, batch = 1;
  std::size_t row_stride = 0, batch_stride = 0;
};
void run(const ClearCall& call);

/// A call for program::Checksum. It writes two 64-bit words to `sum`; see
/// program/fill_and_checksum.hpp. `flip` is null, or points to two such words.
struct ChecksumCall {
  StoredMatrix src;
  std::byte* sum = nullptr;
  const std::byte* flip = nullptr;
};
void run(const ChecksumCall& call);

}  // namespace isoscale::executor::host
