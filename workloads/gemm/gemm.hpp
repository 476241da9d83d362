// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/builder.hpp"
#include "program/op.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::gemm {

// Measures matrix multiplications of many shapes, on all ranks at the same time.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// One call that multiplies `batch` pairs of dense matrices: op(A) is m x k, op(B) is k x n, and D
/// is m x n.
struct Shape {
  std::uint32_t m = 0, n = 0, k = 0, batch = 1;
  program::Transpose transpose_a = program::Transpose::no;
  program::Transpose transpose_b = program::Transpose::yes;  ///< yes: B is contiguous along k
  program::DType a = program::DType::f32, b = program::DType::f32, d = program::DType::f32;
  program::ComputeMode mode = program::ComputeMode::native;
  program::Accumulation accumulation = program::Accumulation::split;  ///< matters only for fp8
  std::string origin{};  ///< "powers", "model" or "search" if it is from that group, else "list"

  [[nodiscard]] std::uint64_t a_count() const { return std::uint64_t{m} * k * batch; }
  [[nodiscard]] std::uint64_t b_count() const { return std::uint64_t{k} * n * batch; }
  [[nodiscard]] std::uint64_t d_count() const { return std::uint64_t{m} * n * batch; }
  [[nodiscard]] double flop() const { return 2.0 * m * n * k * batch; }
  /// Returns the size of A, B and D together.
  [[nodiscard]] std::uint64_t bytes() const {
    return a_count() * program::element_size(a) + b_count() * program::element_size(b) +
           d_count() * program::element_size(d);
  }
};

/// Returns the shape of a multiplication in a program, with the origin "model".
[[nodiscard]] Shape shape_of(const program::Gemm& gemm, const program::RankProgram& program);

/// One item of the list in option `shapes`: a single shape, or a group of shapes that has a name.
struct ShapeGroup {
  enum class Kind : std::uint8_t { powers, model, search, listed } kind = Kind::listed;
  std::uint32_t m = 0, n = 0, k = 0, batch = 1;  ///< the shape, for Kind::listed
};
/// Reads a list of "MxNxK", "MxNxKxBATCH", "powers", "model" and "search". Throws base::UsageError
/// for any other text.
[[nodiscard]] std::vector<ShapeGroup> parse_shapes(std::string_view key, std::string_view text);
/// True if `shapes` has Kind::model: the measured shapes then depend on the request's model.
[[nodiscard]] bool names_model(const std::vector<ShapeGroup>& shapes);

enum class Cache : std::uint8_t { both, warm, cold };

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<ShapeGroup> shapes;
  Cache cache{};
  std::uint32_t largest = 0;
  long long microbatch = 1;
  std::uint64_t rotate = 0;
  stack::Fp8Accumulate fp8_accumulate{};
};
/// Reads the options. On a GPU, the default of `rotate` is at least twice the size of the L2 cache
/// (PlayBounds::cold).
[[nodiscard]] Values values_of(const Request& request);

/// Returns each shape once, in the order of the option `shapes`; the shapes of one group are sorted
/// by FLOP. Throws base::UsageError for a shape that fp8 GEMMs do not support. With shapes=model,
/// also throws it for a mesh with ep, and for a model that cannot be divided over the mesh.
[[nodiscard]] std::vector<Shape> shapes_of(const Request& request, const Values& options);

[[nodiscard]] BenchHooks hooks();
/// Returns the programs, cases and result rows of the only session. Other workloads call it, too.
[[nodiscard]] Bench build(const Request& request, const Values& options);

/// Memory for the multiplications of several shapes, which share buffers. Each shape has a number
/// of sets; a set has operands and a result of its own, so that a call does not find the operands
/// of the call before it in a cache.
class Operands {
 public:
  explicit Operands(program::Builder& builder) : builder_(builder) {}

  /// Reserves memory for a shape. Must be called for every shape before fill().
  void reserve(const Shape& shape, std::uint64_t sets);
  /// Allocates the buffers, and emits ops that fill the operands with random numbers, which use all
  /// digits of their type. Must be called while the builder writes the setup section, which is run
  /// once before all steps.
  void fill();
  /// Returns the multiplication of a shape with the operands and the result of set number `set`.
  [[nodiscard]] program::Gemm multiplication(const Shape& shape, std::uint64_t set) const;
  /// Emits ops that fill the operands of a set with integers for an exact check (exact_data.hpp),
  /// and its result with a value that is no integer, so that elements that are not written are
  /// noticed. Returns the multiplication to be checked.
  program::Gemm fill_check(const Shape& shape, std::uint64_t set);

 private:
  struct Pool {
    std::uint64_t room = 0;  ///< elements of the buffer
    program::BufferId buffer = program::no_buffer;
  };
  program::Builder& builder_;
  std::map<program::DType, Pool> first_, second_, results_;
};

}  // namespace isoscale::workloads::gemm
