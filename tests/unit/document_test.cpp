// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Item {
  std::string name;
  std::optional<statistics::Located> share{}, time{};
  std::string remark{};
};

constexpr std::array<render::Metric<Item>, 5> item_metrics{{
    {"name", "name", Unit::text, "its name", [](const Item& at) { return render::words(at.name); }},
    {"share", "share", Unit::share, "a share",
     [](const Item& at) { return render::number(at.share); }},
    {"time", "time", Unit::seconds, "a time",
     [](const Item& at) { return render::number(at.time); }, render::Keep::without_interval},
    {"remark", "remark", Unit::text, "a remark",
     [](const Item& at) { return render::words(at.remark); }, render::Keep::if_it_fits},
    {"never", "never", Unit::count, "nothing", [](const Item&) { return render::Value{}; }},
}};

render::DocumentTable table_of_items(const std::vector<Item>& items) {
  return render::table_of(std::span<const render::Metric<Item>>{item_metrics},
                          std::span<const Item>{items});
}

const std::vector<Item> two_items{{"first", statistics::Located{0.925, 0.918, 0.932},
                                   statistics::Located{6.703e-3, 6.67e-3, 6.737e-3}, "fine"},
                                  {"second", std::nullopt, statistics::Located{12.5e-3}, ""}};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Metrics, MakeAColumnWhereAnItemHasAValue) {
  const render::DocumentTable table = table_of_items(two_items);
  std::vector<std::string> keys;
  for (const render::DocumentColumn& column : table.columns) keys.push_back(column.key);
  EXPECT_THAT(keys, ElementsAre("name", "share", "time", "remark"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(std::get<statistics::Located>(table.rows[0][1]).value, 0.925);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[1][1]));
  EXPECT_EQ(table_of_items({}).columns.size(), 0U);
}

TEST(Metrics, ExplainThemselves) {
  const std::vector<render::Note> legend =
      render::legend_of(std::span<const render::Metric<Item>>{item_metrics});
  ASSERT_EQ(legend.size(), item_metrics.size());
  EXPECT_EQ(legend[1].key, "share");
  EXPECT_EQ(legend[1].text, "a share");
}

TEST(DocumentText, ShowsNumbersWithUnitsAndIntervals) {
  EXPECT_THAT(lines_of(render::to_text({table_of_items(two_items)}, 110)),
              ElementsAre("  name                     share            time  remark",
                          "  first   92.5% (91.8% to 93.2%)  6.703 ms ±0.5%  fine",
                          "  second                       —         12.5 ms"));
}

TEST(DocumentText, LosesIntervalsThenColumnsThenEndsOfWords) {
  const render::DocumentTable table = table_of_items(two_items);
  EXPECT_THAT(render::to_text({table}, 52), testing::AllOf(HasSubstr("fine"), Not(HasSubstr("±")),
                                                           HasSubstr("92.5% (91.8% to 93.2%)")));
  EXPECT_THAT(render::to_text({table}, 44),
              testing::AllOf(Not(HasSubstr("fine")), HasSubstr("second")));
  std::vector<Item> items = two_items;
  items[0].name = std::string(200, 'x');
  for (const std::size_t columns : {60U, 80U, 110U}) {
    const std::string text = render::to_text({table_of_items(items)}, columns);
    EXPECT_THAT(text, HasSubstr("xxx…"));
    for (const std::string& line : lines_of(text))
      EXPECT_LE(render::display_width(line), columns) << line;
  }
}

TEST(DocumentText, WrapsNotesBesideTheirKeysOrCutsThem) {
  const render::Document document{
      render::Heading{"Title"},
      std::vector<render::Note>{{"~13%", "one two three four five"},
                                {"", "six seven eight nine", render::Lines::one}},
      render::Paragraph{"ten eleven twelve thirteen", render::Lines::one}};
  EXPECT_THAT(lines_of(to_text(document, 20)),
              ElementsAre("Title", "  ~13%  one two", "        three four", "        five",
                          "        six seven e…", "ten eleven twelve t…"));
}

TEST(DocumentMarkdown, HasAllColumnsAndIntervals) {
  const render::Document document{
      render::Heading{"Title"}, table_of_items(two_items), render::Heading{"More"},
      std::vector<render::Note>{{"~13%", "one"}, {"", "two", render::Lines::one}}};
  EXPECT_THAT(
      lines_of(render::to_markdown(document)),
      ElementsAre("## Title", "", "| name | share | time | remark |", "|---|---:|---:|---|",
                  "| first | 92.5% \\(91.8% to 93.2%\\) | 6.703 ms ±0.5% | fine |",
                  "| second | — | 12.5 ms |  |", "", "### More", "", "- \\~13%: one", "- two", ""));
}

TEST(DocumentMarkdown, EscapesWhatCouldBeMarkup) {
  const std::string bad = "<b>|\x1b[2J\nb";
  const render::Document document{render::Heading{bad}, render::Paragraph{bad},
                                  std::vector<render::Note>{{bad, bad}},
                                  table_of_items({{bad, std::nullopt, std::nullopt, bad}})};
  const std::string text = render::to_markdown(document);
  for (const char* const at : {"<b>", "\x1b", "b>|"}) EXPECT_THAT(text, Not(HasSubstr(at)));
}

TEST(DocumentText, EscapesWhatCouldMoveTheCursor) {
  const std::string bad = "a\x1b[2J\nb";
  const render::Document document{render::Heading{bad}, render::Paragraph{bad},
                                  std::vector<render::Note>{{bad, bad}},
                                  table_of_items({{bad, std::nullopt, std::nullopt, bad}})};
  const std::string text = to_text(document, 110);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(lines_of(text).size(), 5U);
}

}  // namespace
}  // namespace isoscale::analysis
