// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::array table{
    OptionSpec{.key = "overlap", .default_value = "on", .choices = {"on", "off"}, .help = "a"},
    OptionSpec{.key = "bucket",
               .type = OptionType::bytes,
               .default_value = "25MiB",
               .minimum = 1024,
               .maximum = 1 << 30,
               .help = "b"},
    OptionSpec{.key = "any", .type = OptionType::bytes, .default_value = "0", .help = "b"},
    OptionSpec{.key = "batch", .type = OptionType::integer, .minimum = 1, .help = "c"},
    OptionSpec{.key = "level",
               .type = OptionType::integer,
               .default_value = "-1",
               .minimum = -2,
               .maximum = 9,
               .help = "d"},
};
const OptionSpec& spec(std::string_view key) {
  for (const OptionSpec& candidate : table) {
    if (candidate.key == key) return candidate;
  }
  throw std::logic_error("no such option");
}

std::string refusal(std::string_view key, std::string_view value) {
  try {
    validate(spec(key), value);
  } catch (const base::UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << key << " = " << value << " was not refused";
  return "";
}

TEST(Options, AcceptWhatTheTableSays) {
  for (const auto& [key, value] : {std::pair{"overlap", "on"},
                                   {"overlap", "off"},
                                   {"bucket", "1KiB"},
                                   {"bucket", "1GiB"},
                                   {"bucket", "1024"},
                                   {"any", "0"},
                                   {"any", "9223372036854775807"},
                                   {"batch", "1"},
                                   {"batch", "9223372036854775807"},
                                   {"level", "-2"},
                                   {"level", "9"}}) {
    EXPECT_NO_THROW(validate(spec(key), value)) << key << " = " << value;
  }
}

TEST(Options, RefusalsNameKeyValueAndWhatIsAccepted) {
  EXPECT_THAT(refusal("overlap", "offf"),
              AllOf(HasSubstr("option overlap = 'offf'"), HasSubstr("did you mean 'off'?"),
                    HasSubstr("it takes on|off")));
  EXPECT_THAT(refusal("overlap", "ON"), HasSubstr("it takes on|off"));
  EXPECT_THAT(refusal("overlap", ""), AllOf(HasSubstr("empty"), HasSubstr("it takes on|off")));
  EXPECT_THAT(refusal("batch", "0"),
              AllOf(HasSubstr("option batch = '0': too small"), HasSubstr("of at least 1")));
  EXPECT_THAT(refusal("level", "10"), AllOf(HasSubstr("too large"), HasSubstr("from -2 to 9")));
  for (const char* const text : {"x", "1.5", "1e3", "+1", " 1", "1 ", "0x10", "9223372036854775808",
                                 "99999999999999999999999999", "4MiB"}) {
    EXPECT_THAT(refusal("batch", text), HasSubstr("not a whole number")) << text;
  }
  EXPECT_THAT(refusal("bucket", "1023"), HasSubstr("too small"));
  EXPECT_THAT(refusal("bucket", "2GiB"), HasSubstr("too large"));
  EXPECT_THAT(refusal("bucket", "64M"),
              AllOf(HasSubstr("option bucket"), HasSubstr("ambiguous"), HasSubstr("MiB")));
  EXPECT_THAT(refusal("bucket", "-1"), HasSubstr("negative"));
}

TEST(Options, HostileValuesAreEchoedShortAndClean) {
  for (const char* const key : {"overlap", "bucket", "batch"}) {
    const std::string message = refusal(key, "\x1b]0;" + std::string(1'000'000, '9'));
    EXPECT_THAT(message, HasSubstr("\\x1b"));
    EXPECT_LT(message.size(), 300U);
    EXPECT_THAT(refusal(key, std::string_view{"4\0", 2}), HasSubstr("\\x00"));
  }
}

TEST(Options, UnknownKeyGivesTheNearestAndWhereToLook) {
  try {
    validate("dp", table, {{"buckets", "1MiB"}});
    FAIL() << "nothing was refused";
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("workload dp has no option 'buckets'"),
                      HasSubstr("did you mean 'bucket'?"), HasSubstr("isoscale list options dp")));
  }
  EXPECT_THROW(validate("dp", table, {{"batch", "x"}}), base::UsageError);
  EXPECT_NO_THROW(validate("dp", table, {{"batch", "8"}, {"overlap", "off"}}));
}

TEST(Options, SayWhatTheyAccept) {
  EXPECT_EQ(accepted(spec("overlap")), "on|off");
  EXPECT_EQ(accepted(spec("batch")), "a whole number of at least 1");
  EXPECT_EQ(accepted(spec("level")), "a whole number from -2 to 9");
  EXPECT_EQ(accepted(spec("any")), "a size in bytes, such as 25MiB");
}

TEST(OptionReader, GivesWhatWasGivenOrTheDefault) {
  const Options given{{"overlap", "off"}, {"batch", "48"}};
  const OptionReader reader{table, given};
  EXPECT_EQ(reader.text("overlap"), "off");
  EXPECT_TRUE(reader.is("overlap", "off"));
  EXPECT_FALSE(reader.is("overlap", "on"));
  EXPECT_EQ(reader.integer("batch"), 48);
  EXPECT_EQ(reader.integer("level"), -1);
  EXPECT_EQ(reader.bytes("bucket"), 26'214'400U);
  EXPECT_TRUE(reader.has("level"));
}

TEST(OptionReader, KnowsWhatIsAbsent) {
  const Options given;
  const OptionReader reader{table, given};
  EXPECT_FALSE(reader.has("batch"));
  EXPECT_EQ(reader.text("batch"), "");
  EXPECT_THROW((void)reader.integer("batch"), std::logic_error);
  EXPECT_THROW((void)reader.text("typo"), std::logic_error);
}

TEST(Precision, NamesAndTextAgree) {
  using enum Precision;
  for (const auto& [precision, text] : {std::pair{f64, "f64"},
                                        {f32, "f32"},
                                        {tf32, "tf32"},
                                        {f16, "f16"},
                                        {bf16, "bf16"},
                                        {fp8, "fp8"}}) {
    EXPECT_EQ(name(precision), text);
    EXPECT_EQ(parse_precision(text), precision);
  }
}

TEST(Precision, UnknownNameGivesAll) {
  for (const std::string_view text : {"bf17", "", "F32", "float", "int8"}) {
    try {
      (void)parse_precision(text);
      ADD_FAILURE() << text << " was not refused";
    } catch (const base::UsageError& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("unknown dtype"), HasSubstr("f64, f32, tf32, f16, bf16, fp8")));
    }
  }
}

TEST(Scaling, HasNames) {
  EXPECT_EQ(name(Scaling::strong), "strong");
  EXPECT_EQ(name(Scaling::weak), "weak");
}

}  // namespace
}  // namespace isoscale::workloads
