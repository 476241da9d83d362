// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "matchers.hpp"

/// Helpers that return the message with which a call is refused, and look for its decisive words.
namespace isoscale::testing_support {

/// Returns what the error says that `call(given...)` throws, "" when it throws none.
template <class Error = base::UsageError, class Call, class... Given>
std::string refusal(const Call& call, const Given&... given) {
  try {
    static_cast<void>(call(given...));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The same, and fails the test when nothing is thrown.
template <class Error = base::UsageError, class Call, class... Given>
std::string usage_error(const Call& call, const Given&... given) {
  std::string said = refusal<Error>(call, given...);
  if (said.empty()) ADD_FAILURE() << "nothing was refused";
  return said;
}

/// The words that a message has to have; none: nothing may be said at all.
using Words = std::vector<std::string>;

inline void expect_words(const std::string& said, const Words& words) {
  if (words.empty()) {
    EXPECT_EQ(said, "");
  }
  for (const std::string& word : words) EXPECT_THAT(said, HasSubstr(word));
}

/// Calls that are refused, each with what it is given.
template <class Given>
struct Refused {
  Given given;
  Words words;
};

/// Expects of each case that `say`, which returns what is said of it, says its words.
template <class Given, class Say>
void expect_words_of(const std::vector<Refused<Given>>& cases, const Say& say) {
  for (const auto& [given, words] : cases) {
    SCOPED_TRACE(testing::PrintToString(given));
    expect_words(say(given), words);
  }
}

}  // namespace isoscale::testing_support
