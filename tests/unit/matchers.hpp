// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// This header includes GoogleTest and the standard headers that most tests need, and gives the
/// matchers their plain names in every namespace of Isoscale.
namespace isoscale {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::FieldsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;
using testing::IsSupersetOf;
using testing::Le;
using testing::Not;
using testing::Optional;
using testing::Pair;
using testing::Pointwise;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

/// Returns what `value`, a function or a member, gives of each entry of a range.
template <class Range, class Value>
auto mapped(const Range& range, const Value& value) {
  using Result = std::invoke_result_t<const Value&, decltype(*std::begin(range))>;
  std::vector<std::decay_t<Result>> values;
  for (const auto& entry : range) values.push_back(std::invoke(value, entry));
  return values;
}

/// True if a test is to try all cases: a default run leaves out some where they take long.
inline bool every_case() { return std::getenv("ISOSCALE_EVERY_CASE") != nullptr; }

}  // namespace isoscale
