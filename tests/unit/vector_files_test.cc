/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What golden_test makes of files that are not as they should be. */
#include <fstream>

#include <gtest/gtest.h>

#include <tests/mock/temp_dir.h>
#include <tests/unit/golden_files.h>

namespace {

using namespace nda::golden;

/* Files made from a recorded one, with a case that passes and one that reads. */
class VectorFiles : public testing::Test {
protected:
	VectorFiles()
	{
		Json all = Json::parse(std::ifstream("tests/data/golden/udma.json"));

		file_ = all;
		file_["cases"] = {all["cases"][0], all["cases"][1]};
		file_["count"] = 2;
		file_["groups"] = {{all["cases"][0]["group"], 2}};
	}

	void run(const std::string &name = "file.json")
	{
		report_ = run_file(dir_.write(name, file_.dump()), &totals_);
	}

	void expect(unsigned passed, unsigned failed, const std::string &text)
	{
		EXPECT_EQ(totals_.passed, passed);
		EXPECT_EQ(totals_.failed, failed);
		EXPECT_NE(report_.find(text), std::string::npos) << report_;
	}

	nda::test::TempDir dir_;
	Json file_;
	Totals totals_;
	std::string report_;
};

TEST_F(VectorFiles, OfAKnownEngineAreRun)
{
	run();
	expect(2, 0, "2 passed, 0 failed");
	EXPECT_EQ(totals_.cases["udma"], 2u);
}

TEST_F(VectorFiles, WithAnotherResultFail)
{
	file_["cases"][1]["out"]["head"] = 12345;
	file_["cases"][1]["check"] = {"head"};
	run();
	expect(1, 1, "FAILED udma/post/v002");
}

TEST_F(VectorFiles, OfAnUnknownEngineFail)
{
	file_["engine"] = "carrier_pigeon";
	run();
	expect(0, 1, "nobody runs engine carrier_pigeon");
}

TEST_F(VectorFiles, OfAnotherSchemaAreLeftOut)
{
	file_["schema"] = 2;
	run();
	expect(0, 0, "left out, schema is not 1");
}

TEST_F(VectorFiles, OfNoSchemaAreLeftOut)
{
	file_ = {{"anything", 1}};
	run();
	expect(0, 0, "left out, schema is not 1");
}

TEST_F(VectorFiles, WithAnotherCountFail)
{
	file_["count"] = 3;
	run();
	expect(0, 1, "says that it has 3 cases, and has 2");
}

TEST_F(VectorFiles, WithFewerCasesOfAGroupFail)
{
	file_["groups"]["quiet"] = 1;
	run();
	expect(0, 1, "says that it has 1 cases of group quiet, and has 0");
}

TEST_F(VectorFiles, WithoutCasesFail)
{
	file_["cases"] = Json::array();
	file_["count"] = 0;
	file_["groups"] = Json::object();
	run();
	expect(0, 1, "has no cases");
}

TEST_F(VectorFiles, WithACaseThatNobodyCanRunFail)
{
	file_["cases"][0]["in"]["posts"][0]["op"] = "levitate";
	run();
	expect(1, 1, "cannot be run");
}

TEST_F(VectorFiles, OfAGroupThatNobodyKnowsFail)
{
	file_["cases"][0]["group"] = "magic";
	file_["groups"] = {{"magic", 1}};
	run();
	expect(1, 1, "unknown group magic");
}

TEST_F(VectorFiles, ThatAreNoJsonFail)
{
	report_ = run_file(dir_.write("file.json", "{\"schema\": 1,"), &totals_);
	expect(0, 1, "FAILED");
}

TEST_F(VectorFiles, ThatAreNotThereFail)
{
	report_ = run_file(dir_ / "none.json", &totals_);
	expect(0, 1, "cannot be opened");
}

TEST_F(VectorFiles, OfADirectoryAreItsJsonByName)
{
	dir_.write("b.json", "");
	dir_.write("a.json", "");
	dir_.write("README.md", "");

	std::vector<std::filesystem::path> files = files_of(dir_.path());
	ASSERT_EQ(files.size(), 2u);
	EXPECT_EQ(files[0].filename(), "a.json");
	EXPECT_EQ(files[1].filename(), "b.json");
}

/* Else the vectors of an engine could go without being missed. */
TEST_F(VectorFiles, OfTheTreeLeaveNoEngineWithoutCases)
{
	run();
	std::vector<std::string> lacking = engines_without_cases(totals_);

	EXPECT_EQ(lacking,
		(std::vector<std::string>{
			"hns_1825", "in_die", "in_die_verbs", "udma_relay", "xscale"}));
}

} // namespace
