// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Typed {
  bool overlap = false;
  std::uint64_t bucket = 0, any = 1;
  std::optional<long long> batch{};
  int level = 0;
  enum class Mode : std::uint8_t { slow, fast } mode{};
  std::vector<std::string> parts{};
  std::string text{};
};

const std::array table{
    option::toggle<&Typed::overlap>("overlap", "on", "a"),
    option::bytes<&Typed::bucket>("bucket", "25MiB", {1024, 1 << 30}, "b"),
    option::bytes<&Typed::any>("any", "0", {}, "b"),
    option::integer<&Typed::batch>("batch", "", {1}, "c"),
    option::integer<&Typed::level>("level", "-1", {-2, 9}, "d"),
    option::choice<&Typed::mode>("mode", "slow", {"slow", "fast"}, "e"),
    option::list<&Typed::parts>("parts", "a,b", {"a", "b", "c"}, "f"),
    option::text<&Typed::text>("text", "none", "g"),
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

TEST(TypedOptions, HaveWhatWasGivenOrTheDefault) {
  const auto typed = typed_options<Typed>(
      table, {{"overlap", "off"}, {"batch", "48"}, {"mode", "fast"}, {"parts", "c"}});
  EXPECT_FALSE(typed.overlap);
  EXPECT_EQ(typed.batch, 48);
  EXPECT_EQ(typed.mode, Typed::Mode::fast);
  EXPECT_THAT(typed.parts, testing::ElementsAre("c"));
  EXPECT_EQ(typed.bucket, 26'214'400U);
  EXPECT_EQ(typed.level, -1);
  EXPECT_EQ(typed.text, "none");
  const auto defaults = typed_options<Typed>(table, {});
  EXPECT_TRUE(defaults.overlap);
  EXPECT_EQ(defaults.any, 0U);
  EXPECT_EQ(defaults.batch, std::nullopt);
  EXPECT_EQ(defaults.mode, Typed::Mode::slow);
  EXPECT_THAT(defaults.parts, testing::ElementsAre("a", "b"));
  EXPECT_THROW((void)typed_options<Typed>(table, {{"level", "x"}}), std::logic_error);
  const std::vector<OptionSpec> unread{{.key = "unread"}};
  EXPECT_THROW((void)typed_options<Typed>(unread, {}), std::logic_error);
}

TEST(OptionReader, KnowsWhatIsAbsent) {
  const Options given{{"overlap", "off"}};
  const OptionReader reader{table, given};
  EXPECT_EQ(reader.text("overlap"), "off");
  EXPECT_TRUE(reader.has("level"));
  EXPECT_FALSE(reader.has("batch"));
  EXPECT_EQ(reader.text("batch"), "");
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
    EXPECT_EQ(program::parse_precision(text), precision);
  }
}

TEST(Precision, UnknownNameGivesAll) {
  for (const std::string_view text : {"bf17", "", "F32", "float", "int8"}) {
    try {
      (void)program::parse_precision(text);
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
