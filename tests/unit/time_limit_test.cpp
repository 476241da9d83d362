// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/job_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace isoscale::machine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using units::Seconds;

std::optional<TimeLimit> limit_in(const std::map<std::string, std::string>& variables) {
  const Lookup lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string{name});
    return found == variables.end() ? std::nullopt : std::optional{found->second};
  };
  return time_limit(lookup, 1'800'000'000);
}

TEST(TimeLimitOf, SlurmIsAnEnd) {
  EXPECT_EQ(limit_in({{"SLURM_JOB_END_TIME", "1800000600"}}),
            (TimeLimit{.time = Seconds{600}, .source = "SLURM_JOB_END_TIME"}));
  EXPECT_EQ(limit_in({{"SLURM_JOB_END_TIME", "1700000000"}, {"PBS_WALLTIME", "60"}})->time,
            Seconds{0});
}

TEST(TimeLimitOf, PbsIsALength) {
  EXPECT_EQ(limit_in({{"PBS_WALLTIME", "3600"}}),
            (TimeLimit{
                .time = Seconds{3600}, .source = "PBS_WALLTIME", .span = TimeLimit::Span::of_job}));
  EXPECT_EQ(limit_in({{"PBS_WALLTIME", "01:30:05"}})->time, Seconds{5405});
}

TEST(TimeLimitOf, NobodyOrNonsenseIsUnknown) {
  EXPECT_FALSE(limit_in({}).has_value());
  for (const char* const text : {"", "soon", "-5", "1:", "1800000600s", "99999999999999999999"}) {
    EXPECT_FALSE(limit_in({{"PBS_WALLTIME", text}}).has_value()) << text;
    EXPECT_FALSE(limit_in({{"SLURM_JOB_END_TIME", text}}).has_value()) << text;
  }
}

TEST(TimeLimitWarning, IsForRunsThatAreExpectedToTakeLonger) {
  const TimeLimit limit{.time = Seconds{1200}, .source = "SLURM_JOB_END_TIME"};
  EXPECT_FALSE(time_limit_warning(std::nullopt, Seconds{1e9}).has_value());
  EXPECT_FALSE(time_limit_warning(limit, Seconds{1200}).has_value());
  EXPECT_THAT(*time_limit_warning(limit, Seconds{1201}),
              AllOf(HasSubstr("20 min"), HasSubstr("SLURM_JOB_END_TIME"), HasSubstr("--budget 18m"),
                    HasSubstr("--resume")));
  EXPECT_THAT(*time_limit_warning(TimeLimit{.time = Seconds{100}, .source = "x"}, Seconds{200}),
              HasSubstr("--budget 90s"));
  EXPECT_THAT(*time_limit_warning(TimeLimit{.time = Seconds{0}, .source = "x"}, Seconds{200}),
              testing::Not(HasSubstr("--budget")));
}

TEST(TimeLimitWarning, ClaimsNoMoreThanTheWholeOfAJob) {
  const TimeLimit limit{
      .time = Seconds{1200}, .source = "PBS_WALLTIME", .span = TimeLimit::Span::of_job};
  EXPECT_FALSE(time_limit_warning(limit, Seconds{1200}).has_value());
  EXPECT_THAT(*time_limit_warning(limit, Seconds{1201}),
              AllOf(HasSubstr("at most 20 min as a whole (PBS_WALLTIME)"), HasSubstr("--resume"),
                    testing::Not(HasSubstr("fits")), testing::Not(HasSubstr("ends in"))));
}

}  // namespace
}  // namespace isoscale::machine
