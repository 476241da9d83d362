// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// The matchers that most tests use, by their plain names in every namespace of Isoscale.
namespace isoscale {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;

}  // namespace isoscale
