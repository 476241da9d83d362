// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The options of workloads: their values, and the batches and meshes that fit them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan_samples.hpp"
#include "refusal.hpp"
#include "workloads/api/fit.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using testing::AllOf;
using testing::ElementsAre;
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
  return testing_support::usage_error([&] { validate(spec(key), value); });
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
  EXPECT_EQ(accepted(spec("overlap")), "on|off");
  EXPECT_EQ(accepted(spec("batch")), "a whole number of at least 1");
  EXPECT_EQ(accepted(spec("level")), "a whole number from -2 to 9");
  EXPECT_EQ(accepted(spec("any")), "a size in bytes, such as 25MiB");
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
  EXPECT_THAT(testing_support::refusal([] {
                validate("dp", table, {{"buckets", "1MiB"}});
              }),
              AllOf(HasSubstr("workload dp has no option 'buckets'"),
                    HasSubstr("did you mean 'bucket'?"), HasSubstr("isoscale list options dp")));
  EXPECT_THROW(validate("dp", table, {{"batch", "x"}}), base::UsageError);
  EXPECT_NO_THROW(validate("dp", table, {{"batch", "8"}, {"overlap", "off"}}));
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

TEST(Precision, AndScalingHaveNames) {
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
  for (const std::string_view text : {"bf17", "", "F32", "float", "int8"}) {
    EXPECT_THAT(testing_support::refusal([&] { (void)program::parse_precision(text); }),
                AllOf(HasSubstr("unknown dtype"), HasSubstr("f64, f32, tf32, f16, bf16, fp8")));
  }
  EXPECT_EQ(name(Scaling::strong), "strong");
  EXPECT_EQ(name(Scaling::weak), "weak");
}

/// Every mesh of `ranks` ranks on some of the axes, as a user names it.
std::vector<mesh::Request> meshes_of(int ranks, mesh::AxisSet axes) {
  std::vector<std::pair<mesh::Request, int>> found{{{}, ranks}};  // and the ranks left
  for (const mesh::Axis axis : mesh::all_axes) {
    if (!axes.contains(axis)) continue;
    std::vector<std::pair<mesh::Request, int>> longer;
    for (const auto& [begun, left] : found) {
      for (int extent = 1; extent <= left; ++extent) {
        if (left % extent != 0) continue;
        mesh::Request request = begun;
        if (extent > 1) request[axis] = extent;
        longer.emplace_back(request, left / extent);
      }
    }
    found = std::move(longer);
  }
  std::vector<mesh::Request> meshes{{}};
  for (const auto& [request, left] : found) {
    if (left == 1) meshes.push_back(request);
  }
  return meshes;
}

bool knows(const Workload& workload, std::string_view key) {
  return std::ranges::find(workload.options, key, &OptionSpec::key) != workload.options.end();
}

struct Tally {
  int accepted = 0, numbers = 0, meshes = 0;
};

/// Empty when the call is accepted, else its refusal.
std::string fit_refusal(const Workload& workload, const Request& base, const mesh::Request& mesh,
                        int ranks) {
  return testing_support::refusal(
      [&] { EXPECT_EQ(fit(workload, base, mesh, ranks, Scaling::strong).mesh.size(), ranks); });
}

/// One call: if it is refused, the same call must accept what the refusal suggests.
void try_fit(const Workload& workload, const Request& base, const mesh::Request& mesh, int ranks,
             Tally& tally) {
  try {
    static_cast<void>(fit(workload, base, mesh, ranks, Scaling::strong));
    ++tally.accepted;
  } catch (const NumberError& error) {
    ++tally.numbers;
    EXPECT_FALSE(error.suggested().empty()) << workload.name << ": " << error.what();
    for (const long long number : error.suggested()) {
      Request other = base;
      other.options[error.key()] = std::to_string(number);
      EXPECT_EQ(fit_refusal(workload, other, mesh, ranks), "")
          << workload.name << ": " << error.what();
    }
  } catch (const mesh::MeshError& error) {
    ++tally.meshes;
    if (!error.nearest()) return;
    const mesh::Request nearest = mesh::parse_request(mesh::to_text(*error.nearest()));
    EXPECT_EQ(fit_refusal(workload, base, nearest, ranks), "")
        << workload.name << ": " << error.what();
  } catch (const base::UsageError&) {
    return;  // of another option, which suggests nothing
  }
}

TEST(Fit, AcceptsEveryBatchAndMeshThatItSuggests) {
  for (const Workload& workload : registry()) {
    Tally tally;
    const int most_batch = knows(workload, "batch") && !workload.is_bench() ? 64 : 0;
    const int most_microbatch = knows(workload, "microbatch") ? 8 : 0;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::vector<mesh::Request> meshes = meshes_of(ranks, workload.axes);
      for (const int extent : {2, 3, 4, 7}) {
        for (const mesh::Axis axis : mesh::all_axes) {
          if (workload.axes.contains(axis)) meshes.push_back({{axis, extent}});
        }
      }
      for (const mesh::Request& mesh : meshes) {
        for (int batch = most_batch > 0 ? 1 : 0; batch <= most_batch; ++batch) {
          for (int microbatch = 0; microbatch <= most_microbatch; ++microbatch) {
            Request base = samples::planned_request();
            base.options.clear();
            if (batch > 0) base.options["batch"] = std::to_string(batch);
            if (microbatch > 0) base.options["microbatch"] = std::to_string(microbatch);
            try_fit(workload, base, mesh, ranks, tally);
          }
        }
      }
    }
    EXPECT_GT(tally.accepted, 0) << workload.name;
    EXPECT_GT(tally.meshes, 0) << workload.name;
    if (most_batch > 0 && workload.axes.contains(mesh::Axis::dp)) {
      EXPECT_GT(tally.numbers, 0) << workload.name;
    }
  }
}

/// The numbers that the refusal of a call suggests.
std::vector<long long> numbers_for(const Options& options, int ranks) {
  Request base = samples::planned_request();
  base.options = options;
  try {
    static_cast<void>(fit(find_workload("dp"), base, {}, ranks, Scaling::strong));
  } catch (const NumberError& error) {
    return error.suggested();
  }
  return {};
}

TEST(Fit, LooksAtReplicasAndMicrobatchesTogether) {
  EXPECT_THAT(numbers_for({}, 3), ElementsAre(60, 72));
  EXPECT_THAT(numbers_for({{"batch", "64"}}, 3), ElementsAre(60, 72));
  EXPECT_THAT(numbers_for({{"batch", "1"}}, 2), ElementsAre(2));
  EXPECT_THAT(numbers_for({{"microbatch", "4"}, {"microbatches", "16"}}, 3), ElementsAre(15, 18));
}

TEST(Fit, NamesHybridWhereAWorkloadHasNoMeshOfItsOwn) {
  Request base = samples::planned_request();
  base.model.heads = base.model.kv_heads = 15;
  const std::string text = fit_refusal(find_workload("tp"), base, {}, 2);
  EXPECT_THAT(text, testing::HasSubstr("--workload hybrid --mesh dp=2"));
  EXPECT_EQ(fit_refusal(find_workload("hybrid"), base, {{mesh::Axis::dp, 2}}, 2), "");
}

TEST(Fit, RefusesACapacityOfNothing) {
  Request base = samples::planned_request();
  base.options["capacity"] = "0";
  EXPECT_THAT(fit_refusal(find_workload("ep"), base, {}, 2), testing::HasSubstr("capacity='0'"));
  base.options["capacity"] = "none";
  EXPECT_EQ(fit_refusal(find_workload("ep"), base, {}, 2), "");
}

}  // namespace
}  // namespace isoscale::workloads
