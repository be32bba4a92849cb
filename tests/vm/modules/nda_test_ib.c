// SPDX-License-Identifier: GPL-2.0
/*
 * An RDMA device that does nothing but give out pages: those of a BAR of its PCI function, and
 * others that no NPU may have. It binds a function that root names by driver_override.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>

#include "nda_test_ib.h"

static bool accelerator;
module_param(accelerator, bool, 0644);
MODULE_PARM_DESC(accelerator, "functions that are bound from now on pass for accelerators");

struct test_ib {
	struct ib_device ib; /* first: the RDMA core frees it */
	struct pci_dev *pdev;
	unsigned int class; /* that the function has by itself */
	struct page *ram;
};

/* A port's number, of which kernels before 5.13 have 255 at most. */
typedef typeof(((struct ib_device *)NULL)->phys_port_cnt) test_port_t;

struct test_ucontext {
	struct ib_ucontext ib;
};

struct test_pd {
	struct ib_pd ib;
};

static struct test_ib *to_test(struct ib_device *ib)
{
	return container_of(ib, struct test_ib, ib);
}

static int test_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

static int test_query_port(struct ib_device *ib, test_port_t port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_DOWN;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	return 0;
}

static int test_port_immutable(struct ib_device *ib, test_port_t port,
			       struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_RAW_PACKET;
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static enum rdma_link_layer test_link_layer(struct ib_device *ib, test_port_t port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int test_query_gid(struct ib_device *ib, test_port_t port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	return 0;
}

static int test_query_pkey(struct ib_device *ib, test_port_t port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static int test_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void test_dealloc_ucontext(struct ib_ucontext *context)
{
}

static void test_disassociate_ucontext(struct ib_ucontext *context)
{
}

static int test_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int test_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

/* By the page offset of the mapping: see the header. */
static int test_mmap(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct test_ib *test = to_test(context->device);
	unsigned long bar = PHYS_PFN(pci_resource_start(test->pdev, 0));
	unsigned long size = vma->vm_end - vma->vm_start;
	pgprot_t prot = vma->vm_page_prot;

	switch (vma->vm_pgoff) {
	case NDA_TEST_IB_BAR:
		return rdma_user_mmap_io(context, vma, bar, size, pgprot_noncached(prot), NULL);
	case NDA_TEST_IB_CACHED:
		return rdma_user_mmap_io(context, vma, bar, size, prot, NULL);
	case NDA_TEST_IB_RAM:
		vm_flags_set(vma, VM_IO);
		return remap_pfn_range(vma, vma->vm_start, page_to_pfn(test->ram), PAGE_SIZE,
				       pgprot_noncached(prot));
	case NDA_TEST_IB_NOWHERE:
		/* Where no device is: the last page below 512 GiB. */
		return rdma_user_mmap_io(context, vma, (1ul << (39 - PAGE_SHIFT)) - 1, size,
					 pgprot_noncached(prot), NULL);
	default:
		return -EINVAL;
	}
}

static const struct ib_device_ops test_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.query_device = test_query_device,
	.query_port = test_query_port,
	.get_port_immutable = test_port_immutable,
	.get_link_layer = test_link_layer,
	.query_gid = test_query_gid,
	.query_pkey = test_query_pkey,
	.alloc_ucontext = test_alloc_ucontext,
	.dealloc_ucontext = test_dealloc_ucontext,
	.disassociate_ucontext = test_disassociate_ucontext,
	.alloc_pd = test_alloc_pd,
	.dealloc_pd = test_dealloc_pd,
	.mmap = test_mmap,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, test_ucontext, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, test_pd, ib),
};

static int test_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct test_ib *test;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	ret = -ENOMEM;
	test = ib_alloc_device(test_ib, ib);
	if (!test)
		goto disable;
	test->pdev = pdev;
	test->class = pdev->class;
	test->ram = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!test->ram)
		goto dealloc;
	test->ib.phys_port_cnt = 1;
	test->ib.num_comp_vectors = 1;
	/* Newer kernels do this themselves. */
	test->ib.uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_GET_CONTEXT);
	test->ib.node_type = RDMA_NODE_UNSPECIFIED;
	test->ib.dev.parent = &pdev->dev;
	ib_set_device_ops(&test->ib, &test_ops);
	ret = ib_register_device(&test->ib, "nda_test_ib%d", &pdev->dev);
	if (ret)
		goto free_ram;
	pci_set_drvdata(pdev, test);
	if (accelerator)
		pdev->class = PCI_BASE_CLASS_ACCELERATOR << 16;
	return 0;

free_ram:
	__free_page(test->ram);
dealloc:
	ib_dealloc_device(&test->ib);
disable:
	pci_disable_device(pdev);
	return ret;
}

static void test_remove(struct pci_dev *pdev)
{
	struct test_ib *test = pci_get_drvdata(pdev);
	struct page *ram = test->ram;

	pdev->class = test->class;
	ib_unregister_device(&test->ib);
	ib_dealloc_device(&test->ib);
	__free_page(ram);
	pci_disable_device(pdev);
}

static struct pci_driver test_driver = {
	.name = "nda_test_ib",
	.probe = test_probe,
	.remove = test_remove,
};
module_pci_driver(test_driver);

MODULE_DESCRIPTION("an RDMA device for tests of doorbells");
MODULE_LICENSE("GPL");
