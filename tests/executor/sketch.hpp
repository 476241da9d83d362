// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "executor/executor.hpp"
#include "program/low_precision.hpp"
#include "program/program.hpp"

namespace isoscale::executor {

template <class T>
inline constexpr program::DType dtype_of = std::is_same_v<T, double>         ? program::DType::f64
                                           : std::is_same_v<T, float>        ? program::DType::f32
                                           : std::is_same_v<T, std::int64_t> ? program::DType::i64
                                           : std::is_same_v<T, std::int32_t> ? program::DType::i32
                                           : std::is_same_v<T, std::int8_t>  ? program::DType::i8
                                                                             : program::DType::u8;

/// A program written op by op, storage and waits included, which owes nothing to Builder.
class Sketch {
 public:
  Sketch() { program_.streams = {"compute"}; }

  program::Slice buffer(program::DType type, std::uint64_t count,
                        program::Space space = program::Space::device) {
    constexpr std::uint64_t alignment = 64;
    std::uint64_t& end = program_.arena_bytes[static_cast<std::size_t>(space)];
    const auto id = static_cast<program::BufferId>(program_.buffers.size());
    program_.buffers.push_back({.dtype = type, .space = space, .count = count, .offset = end});
    end += (count * program::element_size(type) + alignment - 1) / alignment * alignment;
    return {.buffer = id, .offset = 0, .count = count};
  }
  template <class T>
  program::Slice buffer(std::uint64_t count) {
    return buffer(dtype_of<T>, count);
  }

  template <class T>
  program::Matrix matrix(std::uint64_t rows, std::uint64_t columns) {
    return dense(buffer<T>(rows * columns), columns);
  }
  /// A matrix without gaps in a slice.
  static program::Matrix dense(const program::Slice& slice, std::uint64_t columns) {
    return {.slice = slice, .row_stride = columns};
  }

  /// Appends an op to the step; returns how many ops its stream has then: what others may wait for.
  std::uint32_t emit(program::Payload payload, program::StreamId stream = 0,
                     std::vector<program::Wait> waits = {}) {
    program::Program& step = program_.step();
    for (const program::Wait& wait : waits) mark_awaited(wait);
    while (program_.streams.size() <= stream) {
      program_.streams.push_back("stream" + std::to_string(program_.streams.size()));
    }
    step.ops.push_back({.payload = std::move(payload),
                        .place = {.phase = program::Phase::forward},
                        .stream = stream,
                        .wait_count = static_cast<std::uint8_t>(waits.size()),
                        .wait_begin = static_cast<std::uint32_t>(step.waits.size())});
    step.waits.insert(step.waits.end(), waits.begin(), waits.end());
    return ++counts_[stream];
  }

  /// Appends the sum over ranks along some axes, in place.
  std::uint32_t all_reduce(const program::Slice& all, mesh::AxisSet axes = mesh::Axis::dp,
                           program::StreamId stream = 0, std::vector<program::Wait> waits = {}) {
    return emit(
        program::Collective{
            .kind = program::CollectiveKind::all_reduce, .axes = axes, .send = all, .receive = all},
        stream, std::move(waits));
  }

  [[nodiscard]] const program::RankProgram& program() const { return program_; }

  /// The program on every rank of a mesh.
  [[nodiscard]] program::ProgramSet on(const mesh::Shape& shape) const {
    return {.mesh = shape,
            .programs = {program_},
            .program_of_rank = std::vector<std::uint32_t>(static_cast<std::size_t>(shape.size()))};
  }

 private:
  void mark_awaited(const program::Wait& wait) {
    std::uint32_t count = 0;
    for (program::Op& op : program_.step().ops) {
      if (op.stream == wait.stream && ++count == wait.count) op.awaited = true;
    }
  }

  program::RankProgram program_;
  std::array<std::uint32_t, program::max_streams> counts_{};
};

template <class T>
void put(Session& session, const program::Slice& slice, const std::vector<T>& values) {
  session.write(slice, std::as_bytes(std::span{values}));
}

template <class T>
std::vector<T> get(Session& session, const program::Slice& slice) {
  std::vector<T> values(slice.count);
  session.read(slice, std::as_writable_bytes(std::span{values}));
  return values;
}

/// Every type of element.
inline constexpr std::array all_types{
    program::DType::f64,  program::DType::f32,  program::DType::f16, program::DType::bf16,
    program::DType::e4m3, program::DType::e5m2, program::DType::i64, program::DType::i32,
    program::DType::i8,   program::DType::u8};
[[nodiscard]] constexpr bool is_fp8(program::DType type) {
  return type == program::DType::e4m3 || type == program::DType::e5m2;
}

/// The low bits of the element of a type that is nearest to `value`.
inline std::uint64_t bits_of(program::DType type, double value) {
  if (const auto format = program::narrow_format(type)) return encode(*format, value);
  if (type == program::DType::f64) return std::bit_cast<std::uint64_t>(value);
  if (type == program::DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// The value of an element of any type.
inline double value_of(program::DType type, std::uint64_t bits) {
  using program::DType;
  if (const auto format = program::narrow_format(type)) {
    return double{decode(*format, static_cast<std::uint16_t>(bits))};
  }
  if (type == DType::f64) return std::bit_cast<double>(bits);
  if (type == DType::f32) return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  if (type == DType::u8) return static_cast<double>(bits);
  const std::size_t unused = 64 - 8 * program::element_size(type);
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

/// The nearest value of the floating type.
inline double rounded_to(program::DType type, double value) {
  return value_of(type, bits_of(type, value));
}

/// Element i of memory of a type; the machine is little-endian.
inline double element(program::DType type, const void* base, std::size_t i) {
  const std::size_t size = program::element_size(type);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(base) + i * size, size);
  return value_of(type, bits);
}
inline void set_element(program::DType type, void* base, std::size_t i, double value) {
  const std::size_t size = program::element_size(type);
  const std::uint64_t bits = bits_of(type, value);
  std::memcpy(static_cast<std::byte*>(base) + i * size, &bits, size);
}

/// The values as memory has them in a type.
inline std::vector<std::byte> stored(program::DType type, const std::vector<double>& values) {
  std::vector<std::byte> raw(values.size() * program::element_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) set_element(type, raw.data(), i, values[i]);
  return raw;
}

inline std::vector<double> read_as_doubles(Session& session, const program::Slice& slice,
                                           program::DType type) {
  std::vector<std::byte> raw(slice.count * program::element_size(type));
  session.read(slice, raw);
  std::vector<double> values(slice.count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(type, raw.data(), i);
  return values;
}

/// `values`, each rounded to the floating type.
inline std::vector<double> all_rounded(program::DType type, std::vector<double> values) {
  for (double& value : values) value = rounded_to(type, value);
  return values;
}

/// Uniform in -1 ... 1, the same for the same seed.
template <class T>
std::vector<T> random_values(std::uint64_t count, unsigned seed) {
  std::mt19937 engine{seed};
  std::uniform_real_distribution<double> uniform{-1, 1};
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(uniform(engine));
  return values;
}

/// Small whole numbers: sums of any order are exact.
template <class T>
std::vector<T> whole_values(std::uint64_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(static_cast<std::int64_t>((i * 7 + seed * 13) % 31) - 15);
  }
  return values;
}

/// Returns the message of the error that `work` throws; "" when it throws none.
template <class Error = base::Error, class Work>
std::string message_of(const Work& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace isoscale::executor
