// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fault/every_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/forked_work.hpp"

namespace isoscale::fault {
namespace {

/// A full disk, a broken one, a full quota, a read-only one, one that is closed to this user.
constexpr std::array errors{ENOSPC, EIO, EDQUOT, EROFS, EACCES};

/// Which of `count` calls, from 1, are tried when at most `most` are.
std::vector<int> spread(int count, int most) {
  std::vector<int> chosen;
  const int tried = std::min(count, most);
  for (int i = 0; i < tried; ++i) {
    chosen.push_back(tried == 1 ? count : 1 + static_cast<int>((count - 1LL) * i / (tried - 1)));
  }
  return chosen;
}

}  // namespace

std::vector<Failing> plan(const Work& work, int most) {
  if (const char* const given = std::getenv("ISOSCALE_FAULTS")) most = std::atoi(given);
  work.prepare();
  count();
  work.act();
  stop();
  std::vector<Failing> plan;
  for (const auto& [call, count] : calls()) {
    for (const int nth : spread(count, most)) {
      plan.push_back({.call = call, .nth = nth, .error = errors[plan.size() % errors.size()]});
    }
  }
  return plan;
}

std::string done_with(const Failing& failing, const Work& work) {
  constexpr base::Limits limits{.memory = units::Bytes{std::uint64_t{8} << 30U},
                                .cpu_time = std::chrono::seconds{20},
                                .wall_time = std::chrono::seconds{60}};
  const base::Answer answer = base::answer_within(limits, [&]() -> std::string {
    try {
      work.prepare();
      fail(failing);
      work.act();
      stop();
      if (failed() == 0) return "no call failed";
      return work.check();
    } catch (const std::exception& error) {
      stop();
      return fmt::format("ended in an exception of an unforeseen kind: {}", error.what());
    }
  });
  return answer.text ? *answer.text : "ended in " + answer.ended;
}

std::string to_text(const Failing& failing) {
  return fmt::format("call {} of {} fails ({}){}", failing.nth, failing.call,
                     std::strerror(failing.error),
                     failing.times == Times::ever ? ", and all later ones" : "");
}

}  // namespace isoscale::fault
