// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/elements.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace isoscale::runner {
namespace {

using program::DType;

/// Every code of a type of 8 or 16 bits: finite is what decodes to a finite number.
template <class Code>
void expect_every_code_judged(DType type) {
  constexpr unsigned codes = 1U << (8 * sizeof(Code));
  for (unsigned code = 0; code < codes; ++code) {
    const auto element = static_cast<Code>(code);
    std::vector<std::byte> raw(sizeof element);
    std::memcpy(raw.data(), &element, sizeof element);
    EXPECT_EQ(all_finite(raw, type), std::isfinite(to_doubles(raw, type).front()))
        << program::name(type) << " code " << code;
  }
}

TEST(Elements, FiniteIsWhatDecodesToAFiniteNumber) {
  expect_every_code_judged<std::uint16_t>(DType::f16);
  expect_every_code_judged<std::uint16_t>(DType::bf16);
  expect_every_code_judged<std::uint8_t>(DType::e4m3);
  expect_every_code_judged<std::uint8_t>(DType::e5m2);
}

template <class Value>
void expect_found_anywhere(DType type) {
  constexpr std::size_t count = 37;
  for (const Value bad :
       {static_cast<Value>(INFINITY), static_cast<Value>(-INFINITY), static_cast<Value>(NAN)}) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<Value> values(count, static_cast<Value>(-1e30));
      EXPECT_TRUE(all_finite(std::as_bytes(std::span{values}), type));
      values[at] = bad;
      EXPECT_FALSE(all_finite(std::as_bytes(std::span{values}), type)) << at;
    }
  }
}

TEST(Elements, OneElementThatIsNotFiniteIsFoundAnywhere) {
  expect_found_anywhere<float>(DType::f32);
  expect_found_anywhere<double>(DType::f64);
}

TEST(Elements, IntegersAreNotFloatingPoint) {
  EXPECT_THROW(std::ignore = all_finite({}, DType::i32), base::Error);
}

}  // namespace
}  // namespace isoscale::runner
