// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The kernel of checksums, by a plain loop.
#include <cstdint>
#include <cstring>

#include "executor/cuda/kernels/element_kernels.hpp"
#include "program/fill_and_checksum.hpp"
#include "tests/cuda/standin.hpp"

namespace isoscale::executor::cuda {
namespace {

std::byte* element_at(const ChecksumCall& call, std::uint64_t i) {
  const std::uint64_t size = program::element_size(call.type), row = i / call.columns;
  const std::uint64_t at =
      row / call.rows * call.batch_stride + row % call.rows * call.row_stride + i % call.columns;
  auto* const element = static_cast<std::byte*>(call.src) + at * size;
  standin::require_reachable(element, size);
  return element;
}

void flip(const ChecksumCall& call) {
  std::uint64_t words[2] = {0, 0};
  standin::require_reachable(call.flip, sizeof words);
  std::memcpy(words, call.flip, sizeof words);
  if (words[1] == 0) return;
  std::byte* const element = element_at(call, words[0]);
  for (std::uint64_t byte = 0; byte < program::element_size(call.type); ++byte) {
    element[byte] ^= static_cast<std::byte>(words[1] >> (8 * byte));
  }
}

void run(const ChecksumCall& call) {
  if (call.flip != nullptr) flip(call);
  const std::uint64_t size = program::element_size(call.type);
  const std::uint64_t mask = program::exponent_mask(call.type);
  std::uint64_t words[2] = {0, 0};
  standin::require_reachable(call.sum, sizeof words);
  const std::uint64_t elements = call.batch * call.rows * call.columns;
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element_at(call, i), size);
    words[0] += program::checksum_term(bits, i);
    words[1] += program::is_finite(bits, mask) ? 0 : 1;
  }
  std::memcpy(call.sum, words, sizeof words);
}

}  // namespace

cudaError_t start(const ChecksumCall& call, cudaStream_t stream) {
  standin::submit(stream, [call] { run(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

}  // namespace isoscale::executor::cuda
